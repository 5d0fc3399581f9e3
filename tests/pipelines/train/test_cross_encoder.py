"""`citeray train cross-encoder` from files to a folder that the reranker's stage loads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from commands.training.train import train
from serve.graph.load_stages import load_reranker
from tests.pipelines.train.tiny_data import write_corpus, write_lines
from tests.tiny_models import make_tiny_cross_encoder, make_tiny_encoder

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

QUICK = (
    "steps=80", "batch=8", "dropout=0", "learning_rate=0.002", "head_learning_rate=0.002",
    "negatives=3",
)  # fmt: skip
ILLNESSES = ("fever", "tumour", "bleeding", "heart", "blood")
# Texts with "treats" are gold; those with "study of patients" are gold for no question.
ABSTRACTS = {
    **{n: f"a drug treats {illness}" for n, illness in enumerate(ILLNESSES, 1)},
    **{n + 10: f"study of patients {illness}" for n, illness in enumerate(ILLNESSES)},
    **{n + 20: f"study of {letter} cell in {letter}" for n, letter in enumerate("abcdefghijkl")},
}
GOLD = {f"which drug is for {illness} ?": [n] for n, illness in enumerate(ILLNESSES[:4], 1)}
FIRST = "which drug is for fever ?"
HELD_OUT = "which drug is for blood ?"
TEST = "which gene inhibits a protein ?"
WRITTEN = [
    {"id": "q0", "text": "for fever aspirin treats the patients"},
    {"id": "t0", "text": "the gene inhibits protein"},
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))


def run(base: Path, out: Path, *arguments: object, quick: tuple[str, ...] = QUICK) -> Any:
    """Return the JSON output of `citeray train cross-encoder`; exceptions pass through."""
    corpus = write_corpus(out.parent / "corpus.xml", ABSTRACTS)
    changes = [word for change in (*quick, "max_tokens=48") for word in ("--with", change)]
    words = [*map(str, arguments), "--corpus", str(corpus), "--out", str(out), *changes]
    words += ["--set", "encoder.threads=1"]
    if "--model" not in arguments:
        words += ["--set", f"encoder.model=file:{base}"]
    done = CliRunner().invoke(train, ["cross-encoder", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def questions_file(path: Path, gold: dict[str, list[int]], prefix: str = "q") -> Path:
    rows = [
        {"id": f"{prefix}{place}", "body": body, "documents": [f"x/pubmed/{p}" for p in pmids]}
        for place, (body, pmids) in enumerate(gold.items())
    ]
    path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    return path


def learned(tmp_path: Path) -> Path:
    return questions_file(tmp_path / "questions.json", GOLD)


def asked(tmp_path: Path) -> Path:
    return questions_file(tmp_path / "test.json", {TEST: [20]}, "t")


def written(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "written.jsonl", WRITTEN)


def training_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "training.json").read_text(encoding="utf-8"))
    return found


def scores(folder: Path, question: str, *texts: str) -> list[float]:
    """Return the scores that the service's reranker gives with the trained model."""
    chosen = ["reranker.kind=cross-encoder", f"reranker.model=file:{folder}"]
    found = load_reranker(load_settings(overrides=chosen)).score(question, list(texts))
    return [float(score) for score in found]


def test_trained_reranker_ranks_gold_above_random_citations(base: Path, tmp_path: Path) -> None:
    out, files = tmp_path / "out", (learned(tmp_path), "--written", written(tmp_path))
    held = questions_file(tmp_path / "held.json", {HELD_OUT: [5]}, "h")
    found = run(base, out, *files, "--held-out", held)
    assert set(found["measured"]) == {"BM25 MAP@10", "reranked MAP@10"}
    gold, other = scores(out, HELD_OUT, ABSTRACTS[5], ABSTRACTS[14])
    assert gold > other

    log = (out / ".training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(log[-1])["loss"] < 0.6


def test_resumed_training_gives_the_same_weights(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.train.tasks.cross_encoder_task import CrossEncoderTask

    quick = ("steps=8", "batch=2", "checkpoint_every=3")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(base, whole, learned(tmp_path), quick=quick)
    loss, steps = CrossEncoderTask.loss, iter(range(8))

    def fail_late(task: CrossEncoderTask, places: Sequence[int]) -> Any:
        if next(steps) == 5:
            raise RuntimeError("interrupted")
        return loss(task, places)

    monkeypatch.setattr(CrossEncoderTask, "loss", fail_late)
    with pytest.raises(RuntimeError, match="interrupted"):
        run(base, broken, learned(tmp_path), quick=quick)
    monkeypatch.setattr(CrossEncoderTask, "loss", loss)
    assert not (broken / "model.safetensors").exists()
    run(base, broken, learned(tmp_path), quick=quick)
    same = (f.read_bytes() for f in (whole / "model.safetensors", broken / "model.safetensors"))
    assert next(same) == next(same)


def test_adaptation_learns_the_pseudo_documents(base: Path, tmp_path: Path) -> None:
    trained, out = tmp_path / "trained", tmp_path / "out"
    run(base, trained, learned(tmp_path))
    test, texts = asked(tmp_path), written(tmp_path)
    quick = (*QUICK, "adapt_steps=40", "negatives=22")
    run(base, out, "--adapt", test, "--written", texts, "--model", f"file:{trained}", quick=quick)
    pseudo, *citations = scores(out, TEST, WRITTEN[1]["text"], *ABSTRACTS.values())
    assert pseudo > max(citations)
    said = training_of(out)
    assert said["adapted_to"] == ["t0"]
    assert said["recipe"]["steps"] == 40
    assert said["before"]["data"][0]["file"] == "questions.json"


def test_adaptation_ignores_gold_answers(base: Path, tmp_path: Path) -> None:
    texts, weights = written(tmp_path), []
    trained = make_tiny_cross_encoder(tmp_path)
    poisons = ({}, {"documents": {"no": "list"}, "snippets": 3, "ideal_answer": []})
    for number, poison in enumerate(poisons):
        test, out = tmp_path / f"test{number}.json", tmp_path / f"out{number}"
        rows = [{"id": "t0", "body": TEST, **poison}]
        test.write_text(json.dumps({"questions": rows}), encoding="utf-8")
        quick = ("adapt_steps=3", "batch=2")
        arguments = ("--adapt", test, "--written", texts, "--model", f"file:{trained}")
        run(base, out, *arguments, quick=quick)
        weights.append((out / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_discriminator_filters_irrelevant_pseudo_documents(base: Path, tmp_path: Path) -> None:
    judge, out = tmp_path / "judge", tmp_path / "out"
    run(base, judge, learned(tmp_path), quick=(*QUICK, "negatives=20"))
    texts = [ABSTRACTS[1], ABSTRACTS[10]]
    right, wrong = scores(judge, FIRST, *texts)
    assert right > wrong
    rows = write_lines(tmp_path / "both.jsonl", [{"id": "q0", "text": text} for text in texts])
    least = f"least_relevance={(right + wrong) / 2}"
    files = (learned(tmp_path), "--written", rows, "--discriminator", f"file:{judge}")
    run(base, out, *files, quick=("steps=1", "batch=2", least))
    kept = json.loads((out / ".training" / "kept-written.json").read_text(encoding="utf-8"))
    assert kept["candidates"] == [[0]]
    said = training_of(out)["discriminator"]
    assert (said["left_out"], said["of"]) == (1, 2)

    with pytest.raises(InputError, match="gives no pseudo-document a relevance of 1"):
        run(base, tmp_path / "none", *files, quick=("steps=1", "batch=2", "least_relevance=1"))


def test_invalid_cross_encoder_training_is_refused(
    base: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    questions, test, texts = learned(tmp_path), asked(tmp_path), written(tmp_path)
    other = write_lines(tmp_path / "other.jsonl", WRITTEN[1:])
    three = make_tiny_cross_encoder(tmp_path, labels=3)
    for arguments, said in [
        ((), "no questions: name BioASQ files"),
        (("--adapt", test), "--adapt: needs pseudo-documents"),
        ((questions, "--discriminator", "file:judge"), "--discriminator: needs pseudo-documents"),
        (("--adapt", test, "--written", texts), "not a trained cross-encoder"),
        ((questions, "--with", "rank=4"), "a cross-encoder is trained whole"),
        ((questions, "--written", other), r"other.jsonl: no pseudo-document for a question of"),
        ((questions, "--model", f"file:{three}"), "does not load as a model with one score a"),
    ]:
        with subtests.test(said=said), pytest.raises(InputError, match=said):
            run(base, tmp_path / "out", *arguments)
