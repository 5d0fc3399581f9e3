"""Settings files, overrides and presets, and what is derived from them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from cluster.errors import InputError
from cluster.settings.presets import load_system, system_names
from cluster.settings.read_config import read_yaml
from cluster.settings.settings import load_settings
from cluster.settings.store_digests import store_digests
from cluster.settings.system_settings import SystemSettings
from cluster.settings.used_models import used_models


@pytest.mark.parametrize("name", ["cluster.yaml", "gpu-node.yaml"])
def test_token_vectors_are_stored_only_if_the_reranker_reads_them(name: str) -> None:
    settings = load_settings(name)
    assert settings.reranker.is_stage
    assert settings.index.token_codec is None


def test_files_override_defaults_and_set_overrides_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("index: {shards: 7}\n", encoding="utf-8")
    default, settings = load_settings(), load_settings(path)
    assert default.serve.host == "127.0.0.1"
    assert settings.index == default.index.model_copy(update={"shards": 7})
    changes = ["index.shards=3", "vocabulary.concepts=", "llm.engine.max_num_seqs=2"]
    settings = load_settings(path, changes)
    assert (settings.index.shards, settings.vocabulary.concepts) == (3, "")
    assert settings.llm.engine == {**default.llm.engine, "max_num_seqs": 2}


def test_over_merges_a_shipped_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("over: cluster.yaml\nserve: {shard: {pool: retrieval}}\n", encoding="utf-8")
    settings, under = load_settings(path), load_settings("cluster.yaml")
    assert settings.llm == under.llm
    assert settings.serve.shard == under.serve.shard.model_copy(update={"pool": "retrieval"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("index.shard=3", r"^--set: unknown key index\.shard; did you mean shards\?"),
        ("indx.shards=3", r"unknown key indx; did you mean index\?"),
        ("index.shards", "expected key=value"),
        ("index.shards=true", "^--set: index.shards: is a boolean"),
        ("index.bm25_b=off", "index.bm25_b: is a boolean"),
        ("index.path=", r"index.path: is empty; give a path$"),
        ("index.path=~nobody-here/x", "index.path: names the home folder of an unknown user"),
    ],
)
def test_invalid_set_names_the_key(change: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_settings(None, [change])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("index: {shard: 7}", r"mine\.yaml: unknown key index\.shard"),
        ("index: [", r"mine\.yaml: not YAML"),
        ("index: {shards: 1, 'shards': 2}", r"mine\.yaml: not YAML: the key shards is given twice"),
        ("- 1", "expected a mapping"),
        (None, r"laptop\.yaml"),
    ],
)
def test_invalid_settings_file_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_settings(path, ["llm.kind=url"])


def test_home_folder_is_expanded_in_paths() -> None:
    index = load_settings(None, ["index.path=~/x", "index.cache=~/"]).index
    assert (index.path, index.cache) == (Path.home() / "x", Path.home())


def test_index_path_that_cannot_be_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for path, said in [
        ("file", r"file: \S+/file is a file; name a folder"),
        ("file/below", r"below: \S+/file is a file"),
        ("n" * 256, "File name too long"),
        ("missing/" + "n" * 256, "more than 255 bytes"),
        ("loop/x", "a loop of symbolic links|Too many levels"),
    ]:
        index = load_settings(None, [f"index.path={tmp_path / path}"]).index
        with pytest.raises(InputError, match=f"^index.path .*{said}"):
            _ = index.location
    assert load_settings(None, [f"index.path={tmp_path}/a/b"]).index.location == tmp_path / "a/b"


def test_all_invalid_values_are_reported() -> None:
    with pytest.raises(InputError) as caught:
        load_settings(None, ["index.shards=0", "serve.port=99999"])
    assert "index.shards" in str(caught.value)
    assert "serve.port" in str(caught.value)


def test_shipped_presets_are_valid(subtests: pytest.Subtests) -> None:
    for name in system_names():
        with subtests.test(name=name):
            assert load_system(name).name == name
    with pytest.raises(InputError, match=r"unknown system 'citery'; did you mean citeray\? there"):
        load_system("citery")


def test_inconsistent_preset_is_rejected(subtests: pytest.Subtests) -> None:
    for preset, changes, complaint in [
        ("sinai", {"retrieve": {"dense": 5, "bm25": 0}}, "online.when always"),
        ("aqams", {"retrieve": {"dense": 0, "bm25": 5}}, "online.when too-few"),
        ("udine-b", {"retrieve": {"dense": 0, "bm25": 5}}, "set retrieve.bm25_over"),
        ("huang", {"ranks": "passages"}, "bm25_over|rankings"),
        ("biorag-v1", {"recency": {"weight": 1}}, "recency weighs citations"),
        ("udine-a", {"rerank": {"depth": 5, "window": 5, "stride": 6}}, "rerank.stride"),
        ("huang", {"rankings": {"by_type": {"list": ["plain"]}}}, "no rankings for factoid"),
        ("biorag-v2", {"rewrite": {"kind": "hide"}}, "hyde"),
        ("biorag-v6", {"self_check": 4}, "less than or equal to 3"),
    ]:
        changed = {**load_system(preset).model_dump(), **changes}
        with subtests.test(preset=preset), pytest.raises(ValidationError, match=complaint):
            SystemSettings.model_validate(changed)


def test_zero_shot_reader_requires_models_and_calibration() -> None:
    changes = ["reader.kind=zero-shot"]
    with pytest.raises(InputError, match=r"needs reranker\.kind cross-encoder and support\.kind"):
        load_settings(None, changes)
    with pytest.raises(InputError, match=r"needs reader\.calibration: make one"):
        load_settings("laptop-hub.yaml", changes)
    changes.append("reader.calibration=mine.json")
    assert load_settings("laptop-hub.yaml", changes).reader.kind == "zero-shot"


def digests(index: str, saved: str) -> dict[str, str]:
    return store_digests(
        load_settings(overrides=[f"index.path={index}", f"serve.saved.url={saved}"])
    )


def test_relative_places_depend_on_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path / "a")
    here = digests("index", "sqlite:///kept/citeray.db")
    monkeypatch.chdir(tmp_path)
    assert here == digests("b/index", f"sqlite:///{os.getcwd()}/a/kept/citeray.db")
    other = digests("index", "sqlite:///kept/citeray.db")
    assert not set(here.values()) & set(other.values())


def test_stores_and_servers_are_compared_without_the_user() -> None:
    one = digests("s3://bucket/index", "postgresql://one@db/citeray")
    assert one == digests("s3://bucket/index", "postgresql+psycopg://two@db/citeray")
    assert one["index.path"] != digests("s3://bucket/other", "")["index.path"]
    assert (
        one["serve.saved.url"]
        != digests("s3://bucket/index", "postgresql://db/b")["serve.saved.url"]
    )


CONFIGS = Path(__file__).resolve().parents[3] / "configs"


@pytest.mark.parametrize("config", ["laptop", "laptop-hub", "cluster", "gpu-node"])
def test_all_models_in_settings_are_listed(config: str) -> None:
    """`citeray models pull` downloads the listed models for machines without a network."""
    settings = load_settings(str(CONFIGS / f"{config}.yaml"))
    named = set(re.findall(r'"((?:pypi|hf|citeray):[^"]+)"', settings.model_dump_json()))
    assert len(named) >= 4
    assert named <= set(used_models(settings).values())
    large, others = (used_models(settings, language_models=which) for which in (True, False))
    assert large | others == used_models(settings)
    assert "llm" in large
    assert "encoder" in others


def test_parsed_settings_are_not_shared_between_readers() -> None:
    read_yaml("index: {shards: 2}", "a.yaml")["index"]["shards"] = 3
    assert read_yaml("index: {shards: 2}", "a.yaml") == {"index": {"shards": 2}}
