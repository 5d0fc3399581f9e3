"""Differences between a run and the paper that it reproduces, from files and presets."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.settings.presets import paper_runs
from cluster.settings.read_config import CONFIGS, read_config
from cluster.settings.settings import Settings
from evaluation.reproduce.read_paper import Form, Paper, other_settings


def tell_differences(
    number: str, paper: Paper, form: Form, settings: Settings
) -> dict[str, list[str]]:
    """Return the differences, one per line, by subject: settings, experiment, or presets."""
    found = {
        "settings": other_settings(number, form, settings),
        "experiment": [
            *paper.differences,
            *(f"At small scale {_bound(key, small)}." for key, small in paper.small.items()),
        ],
    }
    presets = [name for name in paper.systems if name not in paper.own]
    told = {name: list(_of_preset(name)) for name in presets}
    for line in dict.fromkeys(line for lines in told.values() for line in lines):
        about = ", ".join(name for name in presets if line in told[name])
        found.setdefault(about, []).append(line)
    return {about: lines for about, lines in found.items() if lines}


def _bound(key: str, small: int | str) -> str:
    return f"{key} is {small}" if isinstance(small, str) else f"{key} is at most {small}"


def _of_preset(name: str) -> Iterator[str]:
    """Yield the list items of the comment at the top of a preset's file."""
    folder = "systems/runs" if name in paper_runs() else "systems"
    origin = f"{folder}/{name}.yaml"
    item = ""
    for line in read_config(CONFIGS / origin, origin).splitlines():
        text = line.removeprefix("#").strip()
        if not line.startswith("#") or text.startswith("- "):
            if item:
                yield item
            item = ""
        if not line.startswith("#"):
            return
        if text.startswith("- "):
            item = text.removeprefix("- ")
        elif item:
            item = f"{item} {text}"
