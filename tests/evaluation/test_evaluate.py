from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.errors import InputError
from evaluation.bioasq.evaluate_bioasq import evaluate_bioasq, read_benchmark
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bootstrap import Interval, differences, intervals, verdict
from evaluation.scores import Scores
from tests.evaluation.evaluate_command.small_runs import question, write
from tests.evaluation.lint.lint_runs import snippet

SNIPPET = snippet("glucose", 3, 9, document="d1", beginSection="sections.0")


def score(folder: Path, gold: list[Any], run: list[Any], **options: Any) -> Scores:
    wanted = read_gold(write(folder / "gold.json", *gold))
    return score_run(wanted, read_run(write(folder / "run.json", *run), wanted), **options)


def test_means_cover_only_questions_with_the_measure(tmp_path: Path) -> None:
    """The third question has no gold documents, and the fourth is not answered."""
    gold = [question(id_, "summary", name) for id_, name in zip("124", "abd", strict=True)]
    run = [question("1", "summary", "a", "a"), question("2", "summary", "x")]
    scores = score(tmp_path, [*gold, question("3")], [*run, question("3")])
    found = scores.values()
    assert scores.missing == ("4",)
    # Average precisions 1 and 0; a document named twice counts once.
    assert found["documents MAP"] == 0.5
    assert found["documents precision"] == 0.5
    expected = math.exp((math.log(1 + 1e-5) + math.log(1e-5)) / 2)
    assert found["documents GMAP"] == pytest.approx(expected)
    # A run without snippets or exact answers is not scored on them.
    assert math.isnan(found["snippets MAP"])
    assert math.isnan(found["yesno accuracy"])


def test_depth_limits_documents_and_snippets(tmp_path: Path) -> None:
    """The run has 2 of 12 gold documents, at ranks 1 and 12."""
    places = [{**SNIPPET, "document": f"d{n}"} for n in range(12)]
    gold = question("1", "summary", *(f"d{n}" for n in range(12)), snippets=places)
    others = [f"x{n}" for n in range(10)]
    wrong = [{**SNIPPET, "document": name} for name in others]
    found = [places[0], *wrong, places[1]]
    run = question("1", "summary", "d0", *others, "d1", snippets=found)
    ten = score(tmp_path, [gold], [run]).values()
    hundred = score(tmp_path, [gold], [run], depth=100).values()
    assert (ten["documents recall"], hundred["documents recall"]) == (1 / 12, 2 / 12)
    assert ten["documents precision"] == 1 / 10
    assert hundred["documents precision"] == 2 / 12
    # The denominator is the number of gold documents, at most the depth.
    assert ten["documents MAP"] == 1 / 10
    assert hundred["documents MAP"] == pytest.approx((1 + 2 / 12) / 12)
    assert ten["snippets recall"] == pytest.approx(1 / 12)
    assert hundred["snippets recall"] == pytest.approx(2 / 12)
    assert hundred["snippets MAP"] == pytest.approx((1 + 2 / 12) / 12)


def test_yesno_measures_match_hand_calculation(tmp_path: Path) -> None:
    """Gold: yes, yes, yes, no. Run: yes, no, nothing, no."""
    gold = [question(n, "yesno", exact_answer="no" if n == "3" else "yes") for n in "0123"]
    run = [
        question("0", "yesno", exact_answer="Yes, it does."),
        question("1", "yesno", exact_answer="no"),
        question("2", "yesno"),
        question("3", "yesno", exact_answer="no"),
    ]
    found = score(tmp_path, gold, run).values()
    assert found["yesno accuracy"] == 2 / 4
    # Of yes: 1 right, 2 wrong: 2 / (2 + 2). Of no: 1 right, and the same 2 wrong.
    assert found["yesno F1 yes"] == 0.5
    assert found["yesno F1 no"] == 0.5
    assert found["yesno macro F1"] == 0.5
    # A label that never occurs has an F1 of 0, as in the official program.
    found = score(tmp_path, gold[:1], run[:1]).values()
    assert (found["yesno F1 yes"], found["yesno F1 no"], found["yesno macro F1"]) == (1, 0, 0.5)


def test_exact_answers_are_normalised(tmp_path: Path, subtests: pytest.Subtests) -> None:
    jc = [["JC virus", "JCV"]]
    for kind, gold, said, measure, value in [
        ("factoid", jc, [["jcv"]], "factoid MRR", 1),
        # Only the first synonym of a run's answer counts.
        ("factoid", jc, [["HIV", "JCV"]], "factoid MRR", 0),
        # A question with an empty answer list is wrong, not unanswered.
        ("factoid", [["a"]], [], "factoid MRR", 0),
        # In a flat list, each item is one answer.
        ("list", [["a"], ["b"]], ["A", "b"], "list F1", 1),
    ]:
        with subtests.test(gold=gold, said=said):
            asked, run = ([question("1", kind, exact_answer=exact)] for exact in (gold, said))
            assert score(tmp_path, asked, run).values()[measure] == value


def test_items_without_a_name_are_ignored(tmp_path: Path) -> None:
    """As in the official program, they count neither as answers nor as gold."""
    gold = [
        question("1", "factoid", exact_answer=[["a"]]),
        question("2", "list", exact_answer=[[], ["x"], ["y"]]),
        question("3", "list", exact_answer=[[]]),
    ]
    run = [
        question("1", "factoid", exact_answer=[[], ["a"]]),
        question("2", "list", exact_answer=[["x"], []]),
        question("3", "list", exact_answer=[["z"]]),
    ]
    found = score(tmp_path, gold, run).values()
    assert found["factoid MRR"] == 1
    assert (found["list precision"], found["list recall"]) == (1, 1 / 2)


def test_bootstrap_agrees_with_explicit_resampling(tmp_path: Path) -> None:
    """The measures of a resample equal those of a run with the drawn questions."""
    random.seed(1)
    gold, run = [], []
    for n in range(30):
        kind, exact = random.choice(
            [("yesno", "yes"), ("yesno", "no"), ("factoid", [["a"]]), ("list", [["a"], ["b"]])]
        )
        said = random.choice(["yes", "no"]) if kind == "yesno" else [[random.choice("abc")]]
        gold.append(question(str(n), kind, "a", "b", exact_answer=exact))
        run.append(question(str(n), kind, *random.sample("abcdef", 3), exact_answer=said))
    scores = score(tmp_path, gold, run)
    counts = np.bincount(random.choices(range(30), k=30), minlength=30)
    copies = [n for n, count in enumerate(counts) for _ in range(count)]
    again = [{**gold[n], "id": f"{n}-{k}"} for k, n in enumerate(copies)]
    said = [{**run[n], "id": f"{n}-{k}"} for k, n in enumerate(copies)]
    expected = score(tmp_path, again, said).values()
    found = dict(zip(scores.names, scores.over(counts[None, :].astype(float))[0], strict=True))
    assert found == pytest.approx(expected, nan_ok=True)


def runs(folder: Path, right: float, other: float, count: int = 200) -> list[Any]:
    """Return two runs over `count` questions that find the document with these probabilities."""
    random.seed(7)
    gold = [question(str(n), "summary", "a") for n in range(count)]

    def run(chance: float) -> list[Any]:
        found = ("a" if random.random() < chance else "x" for _ in gold)
        return [question(str(n), "summary", document) for n, document in enumerate(found)]

    return [score(folder, gold, run(chance)) for chance in (right, other)]


def test_interval_contains_value_and_depends_on_seed(tmp_path: Path) -> None:
    scores, _ = runs(tmp_path, 0.6, 0.6)
    interval = intervals(scores, seed=3)["documents MAP"]
    assert interval.low < interval.value < interval.high
    assert interval == intervals(scores, seed=3)["documents MAP"]
    assert interval != intervals(scores, seed=4)["documents MAP"]
    # A mean of n draws of 0 or 1: 1.96 standard errors to each side.
    width = 2 * 1.96 * math.sqrt(interval.value * (1 - interval.value) / 200)
    assert interval.high - interval.low == pytest.approx(width, rel=0.15)


def test_verdict_requires_an_interval_without_zero(tmp_path: Path) -> None:
    strong, weak = runs(tmp_path, 0.8, 0.4)
    assert verdict(differences(strong, weak)["documents MAP"]) == "better"
    assert verdict(differences(weak, strong)["documents MAP"]) == "worse"
    one, other = runs(tmp_path, 0.6, 0.6)
    assert verdict(differences(one, other)["documents MAP"]) == "no difference shown"
    assert differences(one, one)["documents MAP"] == Interval(0.0, 0.0, 0.0)
    assert verdict(Interval(0.1, 0.0, 0.2)) == "no difference shown"


def test_differences_cover_questions_that_both_runs_answer(tmp_path: Path) -> None:
    gold = [question(str(n), "summary", "a") for n in range(3)]
    both, one, none = (
        score(tmp_path, gold, [gold[0], question("1", "summary", "x")][:count])
        for count in (2, 1, 0)
    )
    assert differences(both, one)["documents MAP"].value == 0.0
    assert differences(both, none) == {}
    assert intervals(none) == {}


def test_null_offset_is_scored_as_zero_and_noted(tmp_path: Path) -> None:
    entries = read_gold(write(tmp_path / "s", question("1", snippets=[SNIPPET])))
    [placed] = entries["1"].snippets
    assert (placed.begin_section, placed.end_section) == ("0", "abstract")
    assert (placed.begin, placed.end) == (3, 9)
    unplaced, notes = scored_from(None, tmp_path)
    assert unplaced == scored_from(0, tmp_path)[0] > 0
    [note] = notes
    assert note.startswith("snippets with null as an offset, which is scored as 0: 1;")
    assert scored_from(0, tmp_path)[1] == ()


def scored_from(begin: int | None, folder: Path) -> tuple[float, tuple[str, ...]]:
    """Return (F1, notes) of a run whose only snippet begins at `begin`."""
    gold = question("1", "summary", "a", snippets=[SNIPPET])
    said = {**gold, "snippets": [{**SNIPPET, "offsetInBeginSection": begin}]}
    benchmark = read_benchmark(write(folder / "g", gold))
    run = read_run(write(folder / "r", said), benchmark.gold)
    found = evaluate_bioasq(run, benchmark)
    return found.scores.values()["snippets F1"], found.notes


UNPLACED = {name: value for name, value in SNIPPET.items() if name != "offsetInEndSection"}
BAD_ROWS = [
    ("x", "question 0: must be an object"),
    ({"type": "summary"}, "field id"),
    (question("1") | {"documents": "a"}, "field documents must be a list"),
    ({**question("1"), "documents": [1]}, "field documents must hold strings"),
    ({**question("1"), "snippets": [{**SNIPPET, "document": ""}]}, "field document"),
    ({**question("1"), "snippets": [{**SNIPPET, "offsetInBeginSection": True}]}, "whole number"),
    ({**question("1"), "snippets": [UNPLACED]}, "offsetInEndSection must be a whole number"),
    ({**question("1"), "verdict": "sure"}, "field verdict must be"),
    ({**question("1"), "confidence": 2}, "field confidence must be"),
    (question("1", "yesno", exact_answer="maybe"), "id 1: field exact_answer must be yes or no"),
    ({**question("1"), "ideal_answer": [1]}, "field ideal_answer"),
    (question("1", "factoid", exact_answer=[[1]]), "field exact_answer"),
]


def test_invalid_question_is_refused_with_file_and_field(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for row, said in BAD_ROWS:
        with subtests.test(row=row, said=said):
            with pytest.raises(InputError, match=said) as caught:
                read_gold(write(tmp_path / "gold.json", row))
            assert "gold.json: " in str(caught.value)


def test_duplicate_and_unknown_ids_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="question 1: id '1' is answered twice"):
        read_gold(write(tmp_path / "g", question("1"), question("1")))
    wanted = read_gold(write(tmp_path / "g", question("1")))
    with pytest.raises(InputError, match="id '2' is not in the gold file"):
        read_run(write(tmp_path / "r", question("2")), wanted)
