"""`citeray rate`: a sheet of runs, filled in by two people in a browser, and their agreement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from playwright.sync_api import Browser, Page
from typer.testing import CliRunner

from cluster.errors import InputError
from commands.evaluation.rate import rate


def run_rate(*arguments: object) -> Result:
    return CliRunner().invoke(rate, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def sheet(tmp_path: Path, gold: Path, first: Path, second: Path) -> Path:
    path = tmp_path / "sheet.html"
    options = ("--questions", gold, "-o", path, "--sample", 1, "--json")
    told = json.loads(run_rate("sheet", first, second, *options).stdout)
    assert (told["questions"], told["answers"]) == (1, 2)
    assert (told["output"], told["key"]) == (str(path), str(tmp_path / "sheet.key.json"))
    return path


def ratings(path: Path, rater: str, sheet: str = "s", **given: dict[str, Any]) -> Path:
    content = {"sheet": sheet, "rater": rater, "ratings": given}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def fill_in(page: Page, rater: str, given: dict[str, list[int]]) -> None:
    """Rates each answer by the four criteria in their order."""
    page.get_by_label("Your name").fill(rater)
    for answer, values in given.items():
        for name, value in zip(
            ("Readability", "Recall", "Precision", "Repetition"), values, strict=True
        ):
            group = page.get_by_role("group", name=f"{name} of answer {answer}")
            group.get_by_role("radio").nth(value - 1).check()


def save(page: Page, path: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name="Download ratings").click()
    download.value.save_as(path)
    return path


@pytest.mark.process
def test_two_people_fill_in_the_page_and_their_agreement_is_printed(
    browser: Browser, tmp_path: Path, sheet: Path
) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(sheet.as_uri())
    # Nothing can be rated before it is known who rates.
    assert page.get_by_role("radio").first.is_disabled()
    fill_in(page, "Ann", {"1-1": [5, 4, 3, 2], "1-2": [1, 2, 3, 4]})
    assert page.get_by_role("status").inner_text() == "8 of 8 ratings given"
    ann = save(page, tmp_path / "ann.json")
    # Another person at the same browser begins anew, and the first finds her ratings again.
    fill_in(page, "Ben", {"1-1": [5, 4, 4, 4]})
    assert page.get_by_role("status").inner_text() == "4 of 8 ratings given"
    ben = save(page, tmp_path / "ben.json")
    page.reload()
    page.get_by_label("Your name").fill("Ann")
    assert page.get_by_role("status").inner_text() == "8 of 8 ratings given"
    assert page.get_by_role("radio", checked=True).count() == 8
    context.close()
    assert complaints == []

    key = json.loads((tmp_path / "sheet.key.json").read_text())["answers"]
    found = json.loads(
        run_rate("agree", ann, ben, "--key", tmp_path / "sheet.key.json", "--json").stdout
    )
    assert found["raters"] == ["Ann", "Ben"]
    assert found["means"][key["1-1"]["run"]] == {
        "Readability": 5, "Recall": 4, "Precision": 3.5, "Repetition": 3
    }  # fmt: skip
    assert found["means"][key["1-2"]["run"]]["Readability"] == 1
    within = {row["criterion"]: (row["equal"], row["within_one"]) for row in found["agreement"]}
    assert within == {
        "Readability": (1, 1), "Recall": (1, 1), "Precision": (0, 1), "Repetition": (0, 0)
    }  # fmt: skip


def test_means_and_agreement_are_tables(tmp_path: Path) -> None:
    ann = ratings(tmp_path / "a.json", "Ann", **{"1-1": {"Recall": 5}, "1-2": {"Recall": 1}})
    ben = ratings(tmp_path / "b.json", "Ben*", **{"1-1": {"Recall": 4}, "1-2": {"Recall": 1}})
    key = tmp_path / "key.json"
    runs = {"1-1": {"question": "q", "run": "good"}, "1-2": {"question": "q", "run": "bad"}}
    key.write_text(json.dumps({"sheet": "s", "answers": runs}), encoding="utf-8")
    shown = run_rate("agree", ann, ben, "--key", key).stdout.splitlines()
    assert shown[2:6] == [
        "| System | Readability | Recall | Precision | Repetition |",
        "| --- | --- | --- | --- | --- |",
        "| bad | - | 1.00 | - | - |",
        "| good | - | **4.50** | - | - |",
    ]
    assert r"### Agreement of Ann and Ben\*" in shown
    # Kappa: 1 - (1/2) / ((1 + 16 + 9 + 0) / 4).
    assert "| Recall | 2 | 0.50 | 1.00 | 0.92 |" in shown
    assert "| Precision | 0 | - | - | - |" in shown


def test_a_file_that_is_none_of_the_pages_is_refused_by_name(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for content, said in [
        ({"rater": "Ann"}, "lacks a field sheet or ratings"),
        ({"sheet": "s", "rater": " ", "ratings": {}}, "field rater must be the name"),
        ({"sheet": "s", "rater": "A", "ratings": {"1-1": 5}}, "answer 1-1: must be an object"),
        ({"sheet": "s", "rater": "A", "ratings": {"1-1": {"Wit": 5}}}, "no criterion 'Wit'"),
        ({"sheet": "s", "rater": "A", "ratings": {"1-1": {"Recall": 6}}}, "from 1 to 5, not 6"),
        ({"sheet": "s", "rater": "A", "ratings": {"1-1": {"Recall": True}}}, "not True"),
    ]:
        with subtests.test(content=content, said=said):
            bad = tmp_path / "bad.json"
            bad.write_text(json.dumps(content), encoding="utf-8")
            with pytest.raises(InputError, match=rf"bad\.json: .*{said}"):
                run_rate("agree", bad, ratings(tmp_path / "b.json", "Ben"))


def test_ratings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    ann = ratings(tmp_path / "a.json", "Ann", **{"1-1": {"Recall": 5}})
    with pytest.raises(InputError, match="both files are by 'Ann'"):
        run_rate("agree", ann, ann)
    with pytest.raises(InputError, match="Ann and Ben rated two different sheets"):
        run_rate("agree", ann, ratings(tmp_path / "b.json", "Ben", sheet="t"))
    ben, key = ratings(tmp_path / "b.json", "Ben"), tmp_path / "key.json"
    for content, said in [
        ({"sheet": "t", "answers": {}}, "is the key of another sheet"),
        ({"sheet": "s", "answers": {}}, "have an answer 1-1, which the key has not"),
        ({"sheet": "s", "answers": {"1-1": {}}}, "answer 1-1: field run must be a string"),
        ({"sheet": "s"}, "lacks a field sheet or answers"),
    ]:
        key.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match=said):
            run_rate("agree", ann, ben, "--key", key)
