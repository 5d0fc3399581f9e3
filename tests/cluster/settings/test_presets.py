"""Custom presets: files and mappings that extend shipped presets."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.settings.presets import load_system, name_systems, read_system, system_names, vary
from cluster.settings.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def nothing_named() -> Iterator[None]:
    yield
    name_systems({})


def preset(folder: Path, text: str, name: str = "mine.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


# A changed preset does not keep its place in menus.
UNLISTED = {"title": "", "group": "own", "order": 0}


def test_preset_overrides_only_given_keys(tmp_path: Path) -> None:
    found = read_system(preset(tmp_path, "over: citeray\nrerank: {depth: 5}\n"))
    base = load_system("citeray")
    rerank = base.rerank.model_copy(update={"depth": 5})
    wanted = {"name": "mine", "about": "citeray, changed.", "rerank": rerank, **UNLISTED}
    assert found == base.model_copy(update=wanted)
    alone = "retrieve: {dense: 0, bm25: 10}\nfuse: {method: rrf}\nrerank: {}\nevidence: 3\n"
    found = read_system(preset(tmp_path, f"{alone}expand: no"))
    assert (found.name, found.about, found.evidence) == ("mine", "", 3)


def test_max_wrong_is_set_by_preset_or_request(tmp_path: Path) -> None:
    mine = read_system(preset(tmp_path, "over: citeray\nanswer: {max_wrong: 0.02}\n"))
    assert load_system("citeray").answer.max_wrong == 0.1
    assert mine.answer.max_wrong == 0.02
    assert mine.with_max_wrong(None) is mine
    assert mine.with_max_wrong(0).answer == mine.answer.model_copy(update={"max_wrong": 0})
    for wrong in ("1.5", "-0.1", "much"):
        with pytest.raises(InputError, match=r"answer\.max_wrong"):
            read_system(preset(tmp_path, f"over: citeray\nanswer: {{max_wrong: {wrong}}}\n"))


def test_invalid_preset_names_the_key(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, words in [
        ("over: nosuch", r"mine\.yaml: over: nosuch is not a shipped preset; there are: aqams"),
        ("over: [a]", r"over: \['a'\] is not a shipped preset"),
        ("over: citeray\nrerank: {dept: 5}", r"mine\.yaml: unknown key rerank\.dept; did you mean"),
        ("over: citeray\nrerank: {depth: -5}", r"mine\.yaml: rerank\.depth: .* \(got -5\)"),
        ("over: citeray\nname: other", r"mine\.yaml: name: 'other' is not the name mine: remove"),
        ("evidence: 3", r"mine\.yaml: expand: is missing"),
        ("- 1", r"mine\.yaml: expected a mapping"),
        ("a: [", r"mine\.yaml: not YAML"),
    ]:
        with subtests.test(text=text), pytest.raises(InputError, match=words):
            read_system(preset(tmp_path, text))
    with pytest.raises(InputError, match=r"nowhere\.yaml: cannot be read: No such file"):
        read_system("nowhere.yaml")


@pytest.mark.parametrize("name", ["Mine.yaml", "a.b.yaml", "citeray.yaml", "-.yaml", ".yaml"])
def test_invalid_preset_file_name_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"use lower-case|choose another name"):
        read_system(preset(tmp_path, "over: citeray", name))


def test_settings_define_presets_by_file_or_mapping(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    file = preset(tmp_path, "over: hybrid\nevidence: 4\n")
    config.write_text(
        f"serve: {{systems: {{mine: {file}, flat: {{over: citeray, rerank: {{depth: 0}}}}}}}}",
        encoding="utf-8",
    )
    systems = load_settings(config).serve.systems
    assert systems["mine"].evidence == 4
    assert systems["flat"].rerank.depth == 0
    assert systems["flat"].name == "flat"


def test_presets_survive_pickling_and_dumping() -> None:
    settings = load_settings(overrides=["serve.systems.flat.over=citeray"])
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Settings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("serve.systems.citeray.over=bm25", "citeray is the name of a shipped preset; choose"),
        ("serve.systems.Big.over=bm25", r"serve\.systems\.Big: 'Big' is not a valid preset name"),
        ("serve.systems.mine=5", r"serve\.systems\.mine: expected a file or a mapping, got 5"),
        ("serve.systems.mine.evidense=5", r"serve\.systems\.mine: .*unknown key evidense"),
        ("serve.systems=5", r"serve\.systems: "),
    ],
)
def test_invalid_preset_in_settings_names_the_key(override: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_settings(overrides=[override])


def test_custom_presets_replace_earlier_ones() -> None:
    mine = load_system("bm25").model_copy(update={"name": "mine"})
    name_systems({"mine": mine})
    assert load_system("mine") is mine
    assert "mine" in system_names()
    name_systems({})
    assert "mine" not in system_names()
    with pytest.raises(InputError, match="unknown system 'mine'"):
        load_system("mine")


def test_vary_changes_one_value_and_the_name() -> None:
    base = load_system("citeray")
    flat = vary(base, "rerank.depth", 0)
    rerank = base.rerank.model_copy(update={"depth": 0})
    wanted = {"name": "citeray.rerank.depth=0", "rerank": rerank, **UNLISTED}
    assert flat == base.model_copy(update=wanted)
    share = {"name": "citeray.evidence_share=0.5", "evidence_share": 0.5, **UNLISTED}
    assert vary(base, "evidence_share", 0.5) == base.model_copy(update=share)
