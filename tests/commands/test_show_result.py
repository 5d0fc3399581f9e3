"""Output of a build or an update."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from commands.context import make_context
from commands.index_jobs.show_progress import reporter
from commands.index_jobs.show_result import print_result
from pipelines.indexing.staging.plan_build import BuildResult
from tests.pipelines.staging import account

PLACE = "n1.xml.gz, PMID 61, bytes 5 to 9 of the decompressed file: not well-formed XML (x)"


@pytest.mark.parametrize("as_json", [False, True])
def test_damaged_records_are_reported(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    context = make_context(None, None, as_json)
    sources = (account("n1.xml.gz", 3, damaged=(PLACE,)), account("n2.xml.gz", 3))
    print_result(context, BuildResult(None, sources), 1.0, json=as_json)
    written, said = capsys.readouterr()
    assert f"set aside: {PLACE}\n" in said
    assert "records that could not be read and are not in the index: 1; " in said
    if as_json:
        assert json.loads(written)["sources"][0]["damaged"] == [PLACE]


def test_announcement_follows_the_models_and_precedes_the_build(
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = make_context(None, None, json_output=False)
    with reporter(context, lambda log: log.print("this build replaces v000001")) as report:
        for stage in ("models", "embed", "index"):
            report(SimpleNamespace(stage=stage, done=1, total=1, unit="files"))
    assert capsys.readouterr().err.splitlines() == [
        "fetching models: 1 of 1 files",
        "this build replaces v000001",
        "embedding: 1 of 1 files",
        "building shards: 1 of 1 files",
    ]
