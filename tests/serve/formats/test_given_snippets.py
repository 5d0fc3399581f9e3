import json
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question
from cluster.errors import CiteRayError, InputError
from cluster.records import Passage
from cluster.settings.settings import load_settings
from commands.answer import answer, make_batch
from serve.client.answer_batch import NONE_GIVEN, Batch
from serve.formats.given_snippets import give_snippets
from tests.serve.client.service_client import ServiceClient, linted_rows, run_batch
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

BODY = "Does metformin activate AMPK?"
YES = "Metformin activates AMPK in human muscle."
QUESTION = Question("q", BODY, "yesno")


def snippet(text: str = YES, pmid: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "document": f"http://www.ncbi.nlm.nih.gov/pubmed/{pmid}",
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": 10,
        "offsetInEndSection": 10 + len(text),
        "text": text,
        **more,
    }


def row(*snippets: dict[str, Any], id_: str = "q", **more: Any) -> dict[str, Any]:
    return {"id": id_, "type": "yesno", "body": BODY, "snippets": list(snippets), **more}


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": rows}))
    return path


def given(path: Path, *rows: Any) -> tuple[Passage, ...]:
    return give_snippets([QUESTION], [write(path, *rows)])[0].given


def test_golden_snippets_become_passages(tmp_path: Path) -> None:
    title = snippet("On warfarin", beginSection="title", endSection="title")
    # Older files have other section names, and offsets need not match the text.
    older = snippet(pmid=3, beginSection="sections.0", offsetInEndSection=12, golden=True)
    rejected = snippet(pmid=4, golden=False)
    assert given(tmp_path / "b", row(snippet(), title, older, rejected, snippet())) == (
        Passage(2, "abstract", 10, 10 + len(YES), YES),
        Passage(2, "title", 10, 21, "On warfarin"),
        Passage(3, "abstract", 10, 12, YES),
    )


def test_snippets_of_several_files_are_joined_by_question_id(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a", row(snippet()), row(id_="r"), {"id": "s"}),
        write(tmp_path / "b", row(snippet(pmid=3), id_="other"), row(snippet(pmid=4))),
    ]
    found = give_snippets([QUESTION, Question("r", BODY), Question("s", BODY)], files)
    assert [[p.pmid for p in question.given] for question in found] == [[2, 4], [], []]


def test_invalid_snippet_is_refused_by_place(tmp_path: Path, subtests: pytest.Subtests) -> None:
    many = [snippet(pmid=n) for n in range(1, 202)]
    for bad, said in [
        (row(), r"b: no question has snippets; leave out --evidence"),
        (row() | {"snippets": "x"}, r"b: question 0: snippets: "),
        (row() | {"snippets": [7]}, r"b: question 0: snippets\.0: "),
        (row(snippet(document="x/pmc/PMC12")), r"snippets\.0\.document: .*'PMC12'"),
        (row(snippet(), snippet("  ")), r"snippets\.1\.text: is empty; leave the"),
        (row(snippet("x" * 5001)), r"snippets\.0\.text: .*at most 5000"),
        (row(snippet(offsetInBeginSection=None)), r"snippets\.0\.offsetInBeginSection: "),
        (row(snippet(offsetInEndSection=9)), r"snippets\.0\.offsetInEndSection: is befo"),
        (row(snippet(golden=2)), r"snippets\.0\.golden: "),
        (row(*many), "id q: 201 snippets, at most 200"),
    ]:
        with subtests.test(said=said), pytest.raises(InputError, match=said):
            given(tmp_path / "b", bad)


def batch_of(path: Path, *feedback: Path, file_format: str = "bioasq") -> Batch:
    settings = load_settings()
    return make_batch(settings, file_format, path, "bm25", feedback, answers=True, given=True)


def entry(output: Path, position: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.read_text())["questions"][position]
    return found


def test_run_answers_from_given_snippets(service: SmallService, tmp_path: Path) -> None:
    output = tmp_path / "run.json"
    path = write(tmp_path / "b", row(snippet()), row(id_="p"))
    counts = run_batch(ServiceClient(service), batch_of(path), output)
    assert entry(output)["ideal_answer"] == YES
    assert entry(output)["documents"] == ["http://www.ncbi.nlm.nih.gov/pubmed/2"]
    assert entry(output)["snippets"] == [snippet()]
    # A question without snippets is searched for.
    assert counts["degraded"][NONE_GIVEN] == 1
    assert "in the liver of diabetic mice" in entry(output, 1)["ideal_answer"]


def test_run_with_other_snippets_is_not_resumed(service: SmallService, tmp_path: Path) -> None:
    output = tmp_path / "run.json"
    rows = [row(snippet()), row(snippet(), id_="r")]
    interrupted = batch_of(write(tmp_path / "b", *rows))
    with pytest.raises(CiteRayError):
        run_batch(ServiceClient(service, lost=["r"]), interrupted, output)
    again = ServiceClient(service)
    run_batch(again, batch_of(write(tmp_path / "b", row(snippet(pmid=3)), rows[1])), output)
    assert again.ids() == ["q", "r"]


def test_round_answers_from_golden_snippets_and_searches_new_documents(
    service: SmallService, tmp_path: Path
) -> None:
    asked = {"type": "yesno", "body": BODY, "answerReady": True}
    questions = write(tmp_path / "round", {"id": "q", **asked}, {"id": "r", **asked})
    feedback = write(tmp_path / "f", row(snippet(golden=True), snippet("No.", 3, golden=False)))
    output = tmp_path / "run.json"
    batch = batch_of(questions, feedback, file_format="synergy")
    counts = run_batch(ServiceClient(service), batch, output)
    assert counts["degraded"][NONE_GIVEN] == 1
    assert entry(output)["ideal_answer"] == YES
    assert [d.rpartition("/")[2] for d in entry(output)["documents"]] == ["1"]
    assert linted_rows(output, questions, "synergy")
    plain = make_batch(load_settings(), "synergy", questions, "bm25", [feedback], answers=True)
    assert plain.inputs != batch.inputs


def test_incompatible_options_are_bad_input(tmp_path: Path, subtests: pytest.Subtests) -> None:
    questions = write(tmp_path / "b", row(snippet()))
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"evidence": "given", "no_answers": True}, "cannot be combined with --no-answers"),
        ({"evidence": "given", "file_format": "biogen-b"}, "--format bioasq or synergy"),
    ]
    for options, said in wrong:
        with subtests.test(options=options), pytest.raises(InputError, match=said):
            answer(questions, tmp_path / "run.json", **options)
