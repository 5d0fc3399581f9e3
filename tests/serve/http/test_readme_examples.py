"""Examples of the HTTP API and the Python client in README and docs/, run on a server."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import httpx
import pytest

from tests.serve.batches.served import Asking, served
from tests.serve.service import SmallService

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "docs/http-api.md", "docs/python-client.md")
PART = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
PYTHON = re.findall(r"```python\n(.*?)```", PART, re.DOTALL)
CURL = [
    line
    for block in re.findall(r"```\n(curl.*?)```", PART, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("readme")
    service = SmallService()
    with served(service, folder, Asking(service)) as http:
        yield str(http.base_url).rstrip("/")


def test_python_examples_print_a_cited_answer(url: str, subtests: pytest.Subtests) -> None:
    assert len(PYTHON) == 3
    for code in PYTHON:
        with subtests.test(code=code):
            assert ADDRESS in code
            with redirect_stdout(io.StringIO()) as out:
                exec(code.replace(ADDRESS, url), {})
            assert "Metformin activates AMPK" in out.getvalue()
            assert re.search(r"\b1\b", out.getvalue()), "names the PMID"


def test_curl_examples_are_answered(url: str, tmp_path: Path) -> None:
    assert len(CURL) == 11
    for line in CURL:
        if line.endswith("/run"):
            end = time.monotonic() + 120
            while httpx.get(f"{url}/v1/batches/b1").json()["state"] != "done":
                assert time.monotonic() < end
                time.sleep(0.1)
        # The examples use PMIDs of the sample corpus, which this index lacks.
        line = line.replace(ADDRESS, url).replace("90000001,90000002", "1,2")
        command = [*shlex.split(line), "--fail"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        _, _, file = line.partition(" -o ")
        said = (tmp_path / file.strip()).read_text() if file else done.stdout
        assert "metformin" in said.lower() or '"b1"' in said
