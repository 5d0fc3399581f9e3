"""Build, update and compaction on a real Ray, by the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cluster.index.layout import shard_of
from cluster.index.manifest import read_manifest
from cluster.index.read_shard import ShardReader
from pipelines.sample.write_sample import SampleCorpus
from tests.end_to_end.command import WHOLE_INDEX, small_settings
from tests.end_to_end.conftest import RayHead
from tests.end_to_end.indexed import Indexed

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

REVISED, DELETED = 90_000_034, 90_000_028
SHARDS = 2


def version_of(index: Path, pmid: int) -> int | None:
    """Return the version of the live record of `pmid`, or None if there is none."""
    number = shard_of(pmid, SHARDS)
    entry = read_manifest(index).shards[number]
    found = ShardReader(index, number, entry, ef_search=8, exact_below=0).citation(pmid)
    return found.version if found else None


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory, sample: SampleCorpus, encoder: Path, ray_head: RayHead
) -> Indexed:
    """The first source of the sample, built."""
    path = tmp_path_factory.mktemp("built") / "index"
    found = Indexed(path, small_settings(path, encoder, SHARDS), ray_head.driver)
    assert found.json("build", str(sample.sources[0]))["citations"] == 156
    return found


@pytest.fixture
def indexed(tmp_path: Path, built: Indexed, encoder: Path) -> Indexed:
    """A copy of `built` that a test may change."""
    path = Path(shutil.copytree(built.path, tmp_path / "index"))
    return Indexed(path, small_settings(path, encoder, SHARDS), built.variables)


@pytest.mark.durability
def test_updates_and_compaction_give_the_result_of_a_full_build(
    indexed: Indexed, sample: SampleCorpus, tmp_path: Path
) -> None:
    """The first update has a damaged first file, so it applies neither of its files."""
    damaged = tmp_path / sample.sources[1].name
    damaged.write_bytes(sample.sources[1].read_bytes()[:20_000])
    held = indexed.command("update", str(damaged), str(sample.sources[2]))
    assert held.returncode == 1
    assert f"{damaged.name} and what follows it are not in the index" in held.stderr
    assert read_manifest(indexed.path).version == "v000001"

    folder = str(sample.sources[0].parent)
    assert version_of(indexed.path, DELETED) is not None
    updated = indexed.json("update", folder, "--each")
    counted = {name: updated[name] for name in ("version", "citations", "superseded", "deleted")}
    assert counted == {"version": "v000003", "citations": 313, "superseded": 1, "deleted": 1}
    assert [s["name"] for s in updated["sources"]] == [p.name for p in sample.sources[1:]]
    assert (version_of(indexed.path, REVISED), version_of(indexed.path, DELETED)) == (2, None)
    as_of = ("info", "--json", "--as-of", sample.sources[1].name)
    assert json.loads(indexed.here(*as_of)[1])["citations"] == 312

    again = indexed.command("update", folder)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing new in 3 source files" in again.stderr

    compacted = indexed.json("compact", "--prune")
    assert (compacted["version"], compacted["segments"]) == ("v000004", SHARDS)
    assert (version_of(indexed.path, REVISED), version_of(indexed.path, DELETED)) == (2, None)
    assert read_manifest(indexed.path).citations == 313
    code, _, stderr = indexed.here(*as_of)
    assert code == 2
    assert "v000002" in stderr
    assert sorted(p.name for p in indexed.path.iterdir()) == WHOLE_INDEX


def test_file_that_was_left_out_can_be_applied_late(indexed: Indexed, sample: SampleCorpus) -> None:
    refused = indexed.command("update", str(sample.sources[2]))
    assert refused.returncode == 2
    assert f"{sample.sources[1].name} missing between" in refused.stderr
    indexed.json("update", str(sample.sources[2]), "--allow-gap")
    folder = str(sample.sources[0].parent)
    late = indexed.json("update", folder)
    assert (late["citations"], late["superseded"], late["deleted"]) == (313, 1, 1)
    assert (version_of(indexed.path, REVISED), version_of(indexed.path, DELETED)) == (2, None)
    assert indexed.json("verify", "--sources", folder)["clean"]
