"""What is on a rating sheet, and what its page does not tell."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from cluster.errors import InputError
from evaluation.ratings.rating_sheet import Sheet, make_sheet
from evaluation.ratings.render_sheet import render_sheet
from tests.evaluation.evaluate_command.small_runs import lines, question, task_b, write

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=y> \"'&{{ 7 * 7 }}\x00"


@pytest.fixture
def sheet(gold: Path, first: Path, second: Path) -> Sheet:
    return make_sheet({"first": first, "second": second}, gold)


def text(sheet: Sheet, answer: str) -> str:
    """The words of an answer on the sheet."""
    (found,) = [a for q in sheet.questions for a in q.answers if a.id == answer]
    return " ".join(passage.text for passage in found.passages)


def page(sheet: Sheet) -> Any:
    return html.document_fromstring(render_sheet(sheet))


def test_every_answer_is_on_the_sheet_and_the_key_tells_its_run(sheet: Sheet) -> None:
    assert len(sheet.questions) == 6
    assert len(sheet.key) == 12
    for answer, (asked, run) in sheet.key.items():
        words = "Iron is stored" if run == "first" else "Zinc is found"
        assert text(sheet, answer) == f"{words} in {asked}."
    # No place tells the run.
    places = {(answer.partition("-")[2], run) for answer, (_, run) in sheet.key.items()}
    assert places == {(place, run) for place in "12" for run in ("first", "second")}


def test_the_seed_decides_the_order(gold: Path, first: Path, second: Path) -> None:
    runs = {"first": first, "second": second}
    assert make_sheet(runs, gold) == make_sheet(runs, gold, seed=0)
    assert make_sheet({"first": first}, gold).id != make_sheet(runs, gold).id
    assert len({tuple(make_sheet(runs, gold, seed=n).key.items()) for n in range(5)}) > 1


def test_the_page_does_not_name_the_runs(sheet: Sheet) -> None:
    rendered = render_sheet(sheet)
    assert "first" not in rendered.replace("first-child", "")
    assert "second" not in rendered


def test_only_the_pages_own_script_may_run_and_nothing_is_loaded(sheet: Sheet) -> None:
    whole = page(sheet)
    (policy,) = whole.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    (script,) = whole.xpath("//script/text()")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert not whole.xpath("//img|//iframe|//@src|//@srcset|//form")
    assert not [name for name in whole.xpath("//@*") if name.attrname.startswith("on")]
    assert not re.search(r"url\(|@import", whole.xpath("string(//style)"))


def test_texts_of_runs_are_only_text(tmp_path: Path) -> None:
    row = question("1", ideal_answer=HOSTILE) | {"body": HOSTILE, "documents": ["javascript:x"]}
    hostile = write(tmp_path / "run.json", row)
    whole = page(make_sheet({"run": hostile}, hostile))
    assert len(whole.xpath("//script")) == 1
    assert not whole.xpath("//img|//article//a")
    assert HOSTILE[:-1] in whole.xpath("string(//h2)")
    assert "\ufffd" in whole.xpath("string(//article)")


def test_an_answer_without_a_text_is_left_out(tmp_path: Path, gold: Path, first: Path) -> None:
    blank = write(tmp_path / "blank.json", question("1", ideal_answer=" "), question("2"))
    sheet = make_sheet({"first": first, "blank": blank}, gold)
    assert {run for _, run in sheet.key.values()} == {"first"}
    with pytest.raises(InputError, match=r"no run has an ideal answer to a question of .*gold"):
        make_sheet({"blank": blank}, gold)


def test_runs_that_cannot_stand_on_one_sheet_are_refused(
    tmp_path: Path, gold: Path, first: Path
) -> None:
    other = lines(tmp_path / "b.jsonl", task_b(1))
    with pytest.raises(InputError, match=r"b\.jsonl: its form is biogen-b, and that of .*bioasq"):
        make_sheet({"first": first, "b": other}, gold)
    given = lines(tmp_path / "a.jsonl", {"metadata": {"qa_id": "1"}, "answer": []})
    with pytest.raises(InputError, match=r"a\.jsonl: BioGen's task A has given sentences"):
        make_sheet({"a": given}, gold)
