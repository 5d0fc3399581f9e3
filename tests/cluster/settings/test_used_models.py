from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.settings.settings import load_settings
from cluster.settings.used_models import used_models

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
STORED = ("pypi:", "hf:", "citeray:")


def names_in(settings: Any) -> Iterator[str]:
    """Yield every model name in the settings."""
    match settings:
        case dict():
            for value in settings.values():
                yield from names_in(value)
        case list() | tuple():
            for value in settings:
                yield from names_in(value)
        case str() if settings.startswith(STORED):
            yield settings


@pytest.mark.parametrize("config", ["laptop", "laptop-hub", "cluster", "gpu-node"])
def test_all_models_in_settings_are_listed(config: str) -> None:
    """`citeray models pull` downloads the listed models for machines without a network."""
    settings = load_settings(str(CONFIGS / f"{config}.yaml"))
    named = set(names_in(settings.model_dump(mode="json")))
    assert len(named) >= 4
    assert named <= set(used_models(settings).values())
    large, others = (used_models(settings, language_models=which) for which in (True, False))
    assert large | others == used_models(settings)
    assert "llm" in large
    assert "encoder" in others
