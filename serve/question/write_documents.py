"""Write pseudo-documents for questions as JSON lines, for `citeray train cross-encoder`."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.errors import InputError, LLMError
from cluster.storage.disk_faults import explain_disk_faults
from serve.contracts.stage_watch import StageWatch
from serve.contracts.watched_model import ModelLimits, WatchedModel
from serve.llm.language_model import ChatModel
from serve.question.rewrite_question import PARAGRAPH_TOKENS, write_paragraphs

AT_ONCE = 8
# First bytes of each line that `write_documents` writes.
_BEGIN = b'{"id": '


async def write_documents(
    questions: Mapping[str, str],
    have: Mapping[str, int],
    model: ChatModel,
    *,
    name: str,
    count: int,
    deadline_s: float,
    file: Path,
    tell: Callable[[int], None],
) -> None:
    """Append documents to `file` until each of `questions` (text by id) has `count` of them.

    `have` maps each id to the number of documents in the file by the model `name`. `tell` receives
    the number of questions done. Raises LLMError if any question lacks documents; stops early if
    AT_ONCE questions in a row got none.
    """
    wanting = [known for known in questions if have.get(known, 0) < count]
    left = len(wanting)
    for first in range(0, len(wanting), AT_ONCE):
        known = wanting[first : first + AT_ONCE]
        asked = (_documents(questions[each], model, count, deadline_s) for each in known)
        written = await asyncio.gather(*asked)
        _append(file, name, {k: w[have.get(k, 0) :] for k, w in zip(known, written, strict=True)})
        left -= sum(len(each) == count for each in written)
        tell(first + len(known))
        if not any(written):
            break
    if left:
        raise LLMError(
            f"llm: no usable pseudo-documents for {left} of {len(wanting)} questions; the others "
            f"are in {file}: check llm.url and run the same command again"
        )


async def _documents(question: str, model: ChatModel, count: int, deadline_s: float) -> list[str]:
    watched = WatchedModel(model, StageWatch(math.inf), ModelLimits(deadline_s))
    return await write_paragraphs("pseudo-document", question, [watched] * count, PARAGRAPH_TOKENS)


def _append(file: Path, name: str, written: Mapping[str, list[str]]) -> None:
    lines = (
        json.dumps({"id": known, "text": text, "model": name}, ensure_ascii=False) + "\n"
        for known, texts in written.items()
        for text in texts
    )
    with explain_disk_faults(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.writelines(lines)


def mend_last_line(file: Path) -> None:
    """Remove the last line of `file` if it is cut off; end it if only the newline is missing.

    Raises InputError, and leaves the file unchanged, if the last line was not written by
    `write_documents`.
    """
    content = file.read_bytes() if file.is_file() else b""
    whole = content.rfind(b"\n") + 1
    end = content[whole:]
    if end[: len(_BEGIN)] != _BEGIN[: len(end)]:
        raise InputError(
            f"{file}: not a file of pseudo-documents (see its last line); name another as --out"
        )
    if end:
        with explain_disk_faults(file), file.open("ab") as stream:
            if _is_json(end):
                stream.write(b"\n")
            else:
                stream.truncate(whole)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
