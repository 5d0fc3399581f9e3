"""The generated references list every command, setting and preset with its description."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from cluster.settings.presets import system_names
from cluster.settings.settings import Settings
from docs.generate_reference import render_commands, render_presets, render_settings
from tests.test_readme import EVERY_COMMAND

pytestmark = pytest.mark.model


def keys(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys(inner, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def test_every_command_has_a_section_with_its_options() -> None:
    text = render_commands()
    assert [f"## citeray {path}" for path in EVERY_COMMAND] == [
        line for line in text.splitlines() if line.startswith("## ")
    ]
    assert "`--since <int range>`" in text
    assert "--install-completion" not in text


def test_every_setting_has_a_row_and_a_repeated_model_one_section() -> None:
    settings = render_settings()
    assert [key for key in keys(Settings) if f"| `{key}` |" not in settings] == []
    assert "| `models.rewriters` | list of the keys of its section |" in settings
    assert "| `models.ranker` | the keys of `models.rewriters` |" in settings
    assert settings.count("## models.rewriters.stage\n") == 1
    assert "## models.ranker" not in settings


def test_every_preset_is_listed_with_its_description() -> None:
    text = render_presets()
    assert [name for name in system_names() if f"| `{name}` |" not in text] == []
    assert "Paper 001 (AQAMS" in text
    assert "| `refine` | the keys of `rerank` |" in text
