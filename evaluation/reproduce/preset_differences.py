"""Differences between a run and the paper that it reproduces, from files and presets."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.settings.presets import paper_runs
from cluster.settings.read_config import CONFIGS, read_config, read_yaml
from cluster.settings.settings import Settings
from evaluation.reproduce.read_paper import Form, Paper, other_settings


def list_differences(
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
    """Yield the list items of the comment at the top of a preset's file.

    A preset of a paper over another one also has that one's; a single run has its own only.
    """
    is_run = name in paper_runs()
    origin = f"{'systems/runs' if is_run else 'systems'}/{name}.yaml"
    text = read_config(CONFIGS / origin, origin)
    base = read_yaml(text, origin).get("over")
    if base and not is_run:
        yield from _of_preset(base)
    yield from _list_items(text)


def _list_items(yaml: str) -> Iterator[str]:
    """Yield the list items of the comment at the top of a file."""
    item = ""
    for line in yaml.splitlines():
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
