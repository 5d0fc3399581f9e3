"""Evaluate one run file of any format with all requested measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.errors import InputError
from cluster.index.manifest import current_version
from cluster.models.adapters import model_folder
from cluster.models.sources.model_name import parse_name
from cluster.models.store import ModelStore
from cluster.settings.settings import Settings
from cluster.settings.used_models import used_models
from evaluation.answers.find_judge import check_judge, open_judge
from evaluation.bioasq.evaluate_bioasq import (
    evaluate_bioasq,
    read_answers,
    read_benchmark,
)
from evaluation.bioasq.read_bioasq import read_gold as read_bioasq_gold
from evaluation.bioasq.score_question import MAX_ITEMS
from evaluation.biogen.evaluate_biogen import (
    evaluate_task_a,
    evaluate_task_b,
    read_gold,
)
from evaluation.biogen.judge_citations import EntailmentJudge
from evaluation.evaluated import Evaluated
from evaluation.find_citations import CitationLookup
from evaluation.find_leakage import TrainingData, explain_leakage, read_card
from evaluation.lint.lint_run import check_run, read_asked, read_run_file
from evaluation.lint.note_problems import Asked

ENCODER = Path("encoder")


@dataclass(frozen=True, slots=True)
class Request:
    """The gold and the requested measures; the fields are the options of `citeray evaluate`.

    `depth` is that of `citeray table`: the number of documents and snippets scored per question.
    """

    gold: Path
    run_format: str | None = None
    feedback: tuple[Path, ...] = ()
    qrels: Path | None = None
    bleu: bool = False
    bertscore: Path | None = None
    judge: str | None = None
    judge_model: str = ""
    concurrent: int = 4
    allow_empty: bool = False
    depth: int = MAX_ITEMS


def evaluate_run(
    run: Path, request: Request, settings: Settings, tell: Callable[[str], None]
) -> Evaluated:
    """Evaluate a run; `tell` is called with progress messages of the slow parts.

    Raises InputError, naming the file and the place, for content that cannot be scored.
    """
    if request.judge is not None:
        check_judge(request.judge, request.judge_model, settings)
    if request.bertscore is not None:
        request = replace(request, bertscore=_bertscore_folder(request.bertscore, settings))
    form = read_run_file(run, request.run_format)
    if form.format in ("bioasq", "synergy"):
        evaluated = _bioasq(run, request, settings, tell)
        asked = read_asked(request.gold)
    else:
        evaluated, topics = _biogen(run, form.format, request, settings)
        asked = {topic: Asked() for topic in topics}
    if not evaluated.scores.ids:
        raise InputError(f"{run}: answers no question of {request.gold}; name the run's gold file")
    if form.is_empty and not request.allow_empty:
        raise InputError(
            f"{run}: contains no answers, so every measure would be 0; check how it was made, or "
            "pass --allow-empty to score it anyway"
        )
    problems = check_run(form, asked).problems
    if problems:
        evaluated = evaluated.with_notes(
            f"{len(problems)} violations of the task's limits or form; `citeray lint` lists them"
        )
    missing = len(evaluated.scores.missing)
    if missing:
        total = len(evaluated.scores.ids) + missing
        evaluated = evaluated.with_notes(
            f"{missing} of {total} gold questions have no answer and are excluded from the "
            "means (as in the official programs)"
        )
    return evaluated


def _bertscore_folder(named: Path, settings: Settings) -> Path:
    """Return the named folder, or for the word "encoder" that of the settings' encoder."""
    if named.is_dir():
        return named
    if named == ENCODER:
        return model_folder(settings.encoder)
    raise InputError(
        f'--bertscore {named}: no such folder; name a model\'s folder, or "encoder" for the '
        "settings' encoder"
    )


def _bioasq(
    run: Path, request: Request, settings: Settings, tell: Callable[[str], None]
) -> Evaluated:
    benchmark = read_benchmark(request.gold, request.feedback, request.qrels)
    answers = read_answers(run, benchmark)
    evaluated = evaluate_bioasq(answers, benchmark, request.depth)
    if request.bleu or request.bertscore is not None:
        from evaluation.answers.evaluate_answers import add_texts

        evaluated = add_texts(evaluated, benchmark.gold, answers, request.bertscore)
    if request.judge is not None:
        from evaluation.answers.evaluate_answers import add_ragas, samples

        asked = samples(benchmark.gold, answers)
        with open_judge(request.judge, request.judge_model, settings) as judge:
            evaluated = add_ragas(
                evaluated, asked, judge, request.concurrent,
                lambda done, total: tell(f"judged {done} of {total}"),
            )  # fmt: skip
    return evaluated


def find_leakage(
    gold: Path, trained_on: Sequence[Path], settings: Settings
) -> tuple[list[str], list[str]]:
    """Return the findings of `explain_leakage` about a BioASQ gold file and training data.

    Searches `trained_on`, and the data named by the cards of the settings' models.
    """
    return explain_leakage(read_bioasq_gold(gold), _training_data(trained_on, settings))


def _training_data(files: Sequence[Path], settings: Settings) -> list[TrainingData]:
    """Return the training data named by the settings' models' cards, and `files`."""
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise InputError(f"--trained-on {missing[0]}: no such file")
    stored = {model.name: model.path for model in ModelStore().list()}
    found = [
        read_card(name, path)
        for use, name in used_models(settings).items()
        if use != "concepts" and (path := stored.get(name) or _local_folder(name)) is not None
    ]
    return [TrainingData("the system", tuple(files)), *found] if files else found


def _local_folder(name: str) -> Path | None:
    """Return the model's folder if it is a local one, which may contain a card."""
    parsed = parse_name(name)
    path = Path(parsed.path).expanduser()
    return path if parsed.is_local and path.is_dir() else None


def _biogen(
    run: Path, run_format: str, request: Request, settings: Settings
) -> tuple[Evaluated, tuple[str, ...]]:
    """Return the evaluated run and the topics."""
    labels, topics = read_gold(request.gold)
    judge = _nli(settings)
    task = evaluate_task_a if run_format == "biogen-a" else evaluate_task_b
    evaluated = task(run, labels, topics, judge)
    if judge is None and not labels.by_topic:
        evaluated = evaluated.with_notes(
            "citations are not judged: the gold file has no judgements, and the settings name "
            "no NLI model (support.kind=nli, support.model=...)"
        )
    return evaluated, topics


def _nli(settings: Settings) -> EntailmentJudge | None:
    """Return a judge by the settings' NLI model, or None if they name no such model.

    Raises InputError if there is no index from which to read the cited documents.
    """
    if settings.support.kind != "nli":
        return None
    from serve.graph.load_stages import load_nli

    if current_version(settings.index.location) is None:
        raise InputError(
            f"{settings.index.path}: no index; the NLI judge reads the cited documents there: "
            "name one with --set index.path=..."
        )
    texts = CitationLookup(settings).texts
    return EntailmentJudge(texts, load_nli(settings), settings.support.threshold)
