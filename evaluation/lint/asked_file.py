"""Remember which questions a run was made for, so that the linter can name unanswered ones."""

from __future__ import annotations

from pathlib import Path

from cluster.storage.whole_files import write_atomically

MAX_BYTES = 4096


def note_questions(run: Path, questions: Path) -> None:
    """Write the path of the questions file into a hidden file beside the run."""
    write_atomically(_note_of(run), bytes(questions.absolute()))


def noted_questions(run: Path) -> Path | None:
    """Return the questions file of a run; None if it is not known, or no longer there."""
    note = _note_of(run)
    if not note.is_file() or note.stat().st_size > MAX_BYTES:
        return None
    questions = Path(note.read_text(encoding="utf-8", errors="surrogateescape"))
    return questions if questions.is_file() else None


def _note_of(run: Path) -> Path:
    return run.with_name(f".{run.name}.questions")
