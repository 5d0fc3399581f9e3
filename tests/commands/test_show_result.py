"""What a build or an update says when it ends."""

from __future__ import annotations

import json

import pytest

from commands.context import make_context
from commands.index_jobs.show_result import tell
from pipelines.build.plan_build import BuildResult
from tests.pipelines.staging import account

PLACE = "n1.xml.gz, PMID 61, bytes 5 to 9 of the decompressed file: not well-formed XML (x)"


@pytest.mark.parametrize("as_json", [False, True])
def test_records_that_were_set_aside_are_in_the_summary(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    context = make_context(None, None, as_json)
    sources = (account("n1.xml.gz", 3, damaged=(PLACE,)), account("n2.xml.gz", 3))
    tell(context, BuildResult(None, sources), 1.0, json=as_json)
    written, said = capsys.readouterr()
    assert f"set aside: {PLACE}\n" in said
    assert "records that could not be read and are not in the index: 1; " in said
    if as_json:
        assert json.loads(written)["sources"][0]["damaged"] == [PLACE]


def test_held_and_left_out_sources_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    held = tuple(f"n{number}.xml" for number in range(12))
    result = BuildResult(None, (), held, ("b.xml: left out",))
    tell(make_context(None, None, False), result, 1.0, json=False)
    written, said = capsys.readouterr()
    assert written == ""
    assert "b.xml: left out\nalready in the index with the same content: n0.xml, " in said
    assert said.endswith("n9.xml and 2 more\n")
    tell(make_context(None, None, True), result, 1.0, json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["held"], told["notes"]) == (list(held), ["b.xml: left out"])
