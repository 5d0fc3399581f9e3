"""Presets of one's own: files and mappings, laid over shipped ones, named in the settings."""

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


def test_a_preset_over_another_changes_only_what_it_says(tmp_path: Path) -> None:
    found = read_system(preset(tmp_path, "over: citeray\nrerank: {depth: 5}\n"))
    base = load_system("citeray")
    rerank = base.rerank.model_copy(update={"depth": 5})
    wanted = {"name": "mine", "about": "citeray, changed.", "rerank": rerank}
    assert found == base.model_copy(update=wanted)
    alone = "retrieve: {dense: 0, bm25: 10}\nfuse: {method: rrf}\nrerank: {}\nevidence: 3\n"
    found = read_system(preset(tmp_path, f"{alone}expand: no"))
    assert (found.name, found.about, found.evidence) == ("mine", "", 3)


def test_an_error_budget_is_a_share_that_a_preset_or_a_request_may_set(tmp_path: Path) -> None:
    mine = read_system(preset(tmp_path, "over: citeray\nanswer: {max_wrong: 0.02}\n"))
    assert load_system("citeray").answer.max_wrong == 0.1
    assert mine.answer.max_wrong == 0.02
    assert mine.with_max_wrong(None) is mine
    assert mine.with_max_wrong(0).answer == mine.answer.model_copy(update={"max_wrong": 0})
    for wrong in ("1.5", "-0.1", "much"):
        with pytest.raises(InputError, match=r"answer\.max_wrong"):
            read_system(preset(tmp_path, f"over: citeray\nanswer: {{max_wrong: {wrong}}}\n"))


def test_a_wrong_preset_is_refused_by_its_key(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, words in [
        ("over: nosuch", r"mine\.yaml: over: nosuch is no shipped preset: aqams"),
        ("over: [a]", r"over: \['a'\] is no shipped preset"),
        ("over: citeray\nrerank: {dept: 5}", r"mine\.yaml: unknown key rerank\.dept; did you mean"),
        ("over: citeray\nrerank: {depth: -5}", r"mine\.yaml: rerank\.depth: .* \(got -5\)"),
        ("over: citeray\nname: other", r"mine\.yaml: name: 'other' is not mine: leave it out"),
        ("evidence: 3", r"mine\.yaml: expand: Field required"),
        ("- 1", r"mine\.yaml: expected a mapping"),
        ("a: [", r"mine\.yaml: not YAML"),
    ]:
        with subtests.test(text=text), pytest.raises(InputError, match=words):
            read_system(preset(tmp_path, text))
    with pytest.raises(InputError, match=r"nowhere\.yaml: cannot be read: No such file"):
        read_system("nowhere.yaml")


@pytest.mark.parametrize("name", ["Mine.yaml", "a.b.yaml", "citeray.yaml", "-.yaml", ".yaml"])
def test_a_file_whose_name_cannot_name_a_preset_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"take lower-case|take another name"):
        read_system(preset(tmp_path, "over: citeray", name))


def test_the_settings_name_presets_by_file_or_by_what_they_are(tmp_path: Path) -> None:
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


def test_presets_of_the_settings_survive_a_process_boundary_and_a_dump() -> None:
    settings = load_settings(overrides=["serve.systems.flat.over=citeray"])
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert Settings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("serve.systems.citeray.over=bm25", "citeray is a preset that ships; take another name"),
        ("serve.systems.Big.over=bm25", r"serve\.systems\.Big: 'Big' cannot name a preset"),
        ("serve.systems.mine=5", r"serve\.systems\.mine: expected a file or a mapping, got 5"),
        ("serve.systems.mine.evidense=5", r"serve\.systems\.mine: .*unknown key evidense"),
        ("serve.systems=5", r"serve\.systems: "),
    ],
)
def test_a_wrong_preset_in_the_settings_is_refused_by_its_key(override: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_settings(overrides=[override])


def test_named_presets_can_be_asked_for_until_others_are_named() -> None:
    mine = load_system("bm25").model_copy(update={"name": "mine"})
    name_systems({"mine": mine})
    assert load_system("mine") is mine
    assert "mine" in system_names()
    name_systems({})
    assert "mine" not in system_names()
    with pytest.raises(InputError, match="unknown system 'mine'"):
        load_system("mine")


def test_a_variant_differs_in_one_value_and_is_named_after_it() -> None:
    base = load_system("citeray")
    flat = vary(base, "rerank.depth", 0)
    rerank = base.rerank.model_copy(update={"depth": 0})
    assert flat == base.model_copy(update={"name": "citeray.rerank.depth=0", "rerank": rerank})
    share = {"name": "citeray.evidence_share=0.5", "evidence_share": 0.5}
    assert vary(base, "evidence_share", 0.5) == base.model_copy(update=share)
