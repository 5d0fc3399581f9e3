"""The generated references hold every command, setting and preset, with what is said of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from cluster.settings.presets import system_names
from cluster.settings.settings import Settings
from docs.generate_reference import (
    ROOT,
    allowed,
    comments,
    head,
    render_commands,
    render_presets,
    render_settings,
)
from tests.test_readme import EVERY_COMMAND

pytestmark = pytest.mark.ray


def keys(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys(inner, f"{path}{name}.")
        else:
            yield f"{path}{name}"


@pytest.fixture(scope="module")
def settings() -> str:
    return render_settings()


def test_every_command_has_a_section_with_its_options() -> None:
    text = render_commands()
    assert [f"## citeray {path}" for path in EVERY_COMMAND] == [
        line for line in text.splitlines() if line.startswith("## ")
    ]
    assert "`--since <int range>`" in text
    assert "--install-completion" not in text


def test_every_setting_has_a_row(settings: str) -> None:
    assert [key for key in keys(Settings) if f"| `{key}` |" not in settings] == []


def test_a_setting_tells_its_values_its_default_and_who_differs(settings: str) -> None:
    (row,) = [line for line in settings.splitlines() if line.startswith("| `index.shards` |")]
    assert row.startswith("| `index.shards` | integer, ≥ 1, ≤ 4,096 | `2` | ")
    assert "`64` (`cluster.yaml`)" in row


def test_a_model_of_a_list_has_one_section_and_others_name_it(settings: str) -> None:
    assert "| `models.rewriters` | list of the keys of its section |" in settings
    assert "| `models.ranker` | the keys of `models.rewriters` |" in settings
    assert settings.count("## models.rewriters.stage\n") == 1
    assert "## models.ranker" not in settings


def test_what_laptop_yaml_says_beside_a_key_is_told(settings: str) -> None:
    assert "a segment with fewer passages is searched exactly" in settings


def test_comments_are_those_of_their_own_line() -> None:
    text = "a:\n  b: 1  # one\n  c: x#y\nd: [1]  # two # three\n"
    assert comments(text) == {"a.b": "one", "d": "two # three"}


def test_every_preset_is_listed_and_its_head_told() -> None:
    text = render_presets()
    assert [name for name in system_names() if f"| `{name}` |" not in text] == []
    assert "Paper 001 (AQAMS" in text
    assert "| `refine` | the keys of `rerank` |" in text


def test_a_head_becomes_a_list(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# Of it:\n# - one\n#   more\n# - two\nname: a\n# no head\n", encoding="utf-8")
    assert head(path) == "Of it:\n\n- one\n  more\n- two"


def test_values_are_told_in_words(subtests: pytest.Subtests) -> None:
    for name, told in [
        ("path", "path or text"),
        ("vectors", "`flat`, `fp16`, `sq8`"),
        ("bm25_over", "list of `citations`, `passages`"),
        ("bm25_b", "number, ≥ 0, ≤ 1"),
    ]:
        with subtests.test(name=name, told=told):
            index: Any = Settings.model_fields["index"].annotation
            assert allowed(index.model_fields[name]) == told


def test_the_pages_markers_are_those_that_are_generated() -> None:
    for name in ("commands", "settings", "presets"):
        page = ROOT / f"docs/reference/{name}.md"
        assert f"<!-- generated: {name} -->" in page.read_text(encoding="utf-8")
