from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.serve.batches.served import Asking, served
from tests.serve.http.page.conftest import SAID, Hand, open_page
from tests.serve.http.page.test_page import QUESTION
from tests.serve.service import SmallService

pytestmark = pytest.mark.browser
# Text of an answer on which the sources disagree, in the list of a batch.
DISPUTED = """async () => {
  const { BatchResults } = await import("/static/batch_results.js");
  const results = new BatchResults("b");
  const said = {exact_answer: "yes", ideal_answer: "It may."};
  results.add({id: "1", body: "Q?", verdict: "mixed", ...said});
  return results.list.textContent;
}"""


@pytest.fixture(scope="module")
def asking(service: SmallService) -> Asking:
    return Asking(service)


@pytest.fixture(scope="module")
def batch_url(
    service: SmallService, asking: Asking, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with served(service, tmp_path_factory.mktemp("batches"), asking) as http:
        yield str(http.base_url)


@pytest.fixture
def page(browser: Browser, batch_url: str, asking: Asking) -> Iterator[Page]:
    asking.trouble = lambda question: None
    with open_page(browser, batch_url) as page:
        page.get_by_role("tab", name="Batch").click()
        yield page


def file_of(tmp_path: Path, count: int) -> Path:
    rows = [{"id": f"q{n}", "type": "yesno", "body": f"{QUESTION} {n}"} for n in range(count)]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    return file


def start(page: Page, file: Path) -> None:
    page.get_by_label("or a file: CSV, plain text or JSON").set_input_files(file)
    page.get_by_role("button", name="Start").click()


def test_batch_is_run_and_read_in_3_clicks(page: Page, asking: Asking) -> None:
    page.reload()
    hand = Hand(page)
    hand.click(page.get_by_role("tab", name="Batch"))
    page.get_by_label("Questions, one a line").fill(f"{QUESTION}\n\nWhich drug inhibits VKORC1?")
    hand.click(page.get_by_role("button", name="Start"))
    # Find it by its question, as answers arrive in any order.
    result = page.locator(".result").filter(has_text=QUESTION)
    hand.click(result.locator("summary"))
    expect(result).to_contain_text(SAID)
    expect(result.get_by_role("link", name="PMID 1")).to_be_visible()
    expect(page.locator("#batches li").first).to_contain_text("done: 2 of 2")
    expect(page.locator(".result")).to_have_count(2)
    assert hand.clicks <= 3


def test_file_of_questions_becomes_a_run_and_a_table(page: Page, tmp_path: Path) -> None:
    start(page, file_of(tmp_path, 3))
    batch = page.locator("#batches > li").first
    expect(batch).to_contain_text("done: 3 of 3")
    page.reload()
    page.get_by_role("tab", name="Batch").click()
    with page.expect_download() as fetched:
        batch.get_by_role("button", name="Run file").click()
    run = json.loads(Path(fetched.value.path()).read_bytes())
    assert [entry["id"] for entry in run["questions"]] == ["q0", "q1", "q2"]
    with page.expect_download() as fetched:
        batch.get_by_role("button", name="Answers as a table").click()
    with Path(fetched.value.path()).open(encoding="utf-8-sig", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["question"] for row in rows] == [f"{QUESTION} {n}" for n in range(3)]
    assert rows[0]["exact answer"] == "Yes"
    assert page.evaluate(DISPUTED) == "Q? Sources disagreeIt may."
    batch.get_by_role("button", name="Remove").click()
    expect(page.locator("#batches > li")).to_have_count(0)


def test_csv_file_is_asked_with_filters_and_becomes_documents(page: Page, tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    table.write_text(f'Nr;Question;type\n1;"{QUESTION}; and ""why""?";yesno\n2;{QUESTION};\n')
    page.locator("#filters > summary").click()
    page.get_by_label("Retracted").select_option("not retracted")
    with page.expect_request("**/v1/batches") as sent:
        start(page, table)
    body = sent.value.post_data_json
    assert body["filters"] == {"retracted": False}
    assert body["questions"] == [
        {"id": "1", "type": "yesno", "body": f'{QUESTION}; and "why"?'},
        {"id": "2", "type": "unknown", "body": QUESTION},
    ]
    batch = page.locator("#batches > li").first
    expect(batch).to_contain_text("done: 2 of 2")
    for name, ending, begin in (
        ("Answers in Word", "docx", b"PK"),
        ("References", "ris", b"TY"),
    ):
        with page.expect_download() as fetched:
            batch.get_by_role("button", name=name).click()
        assert fetched.value.suggested_filename == f"questions.{ending}"
        assert Path(fetched.value.path()).read_bytes().startswith(begin)
    page.get_by_role("tab", name="Ask").click()
    expect(page.get_by_role("button", name="Remove filter: not retracted")).to_be_visible()


def test_questions_are_read_from_text_tables_and_json(page: Page, tmp_path: Path) -> None:
    for name, text in {
        "a.txt": "One?\n\n Two? \r\n",
        "a.csv": "One?\nTwo?\n",
        "a.tsv": "id\tbody\r\n1\tOne?\r\n2\tTwo?",
        "a.json": '["One?", {"question": "Two?"}]',
    }.items():
        file = tmp_path / name
        file.write_bytes(text.encode())
        with page.expect_request("**/v1/batches") as sent:
            start(page, file)
        bodies = [question["body"] for question in sent.value.post_data_json["questions"]]
        assert bodies == ["One?", "Two?"], name


def test_invalid_file_is_refused_with_a_message(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    unfit = tmp_path / "unfit.json"
    unfit.write_text('{"questions": [{"id": "q1"}]}', encoding="utf-8")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#batch-problem")).to_contain_text("Write a question on each line")
    said = "bad.json: the questions cannot be read"
    for file, words in ((bad, said), (unfit, "question 0 (id q1)")):
        start(page, file)
        expect(page.locator("#batch-problem")).to_contain_text(words)


def test_batch_can_be_cancelled(page: Page, asking: Asking, tmp_path: Path) -> None:
    asking.trouble = lambda question: threading.Event().wait(0.1) and None
    before = len(asking.asked)
    start(page, file_of(tmp_path, 100))
    batch = page.locator("#batches > li").first
    batch.get_by_role("button", name="Cancel").click()
    expect(batch).to_contain_text("cancelled: ")
    assert len(asking.asked) - before < 100
