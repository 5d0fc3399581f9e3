"""Presets by name: those shipped in configs/systems, and those defined in the settings.

Presets in configs/systems/runs are single runs of the papers. They can be used but are not listed.

A custom preset is a YAML file, or a mapping in the settings (`serve.systems`). With
`over: citeray` at its head, it contains only its differences from that preset.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from cluster.errors import InputError, cut
from cluster.settings.read_config import CONFIGS, explain, merge, read_config, read_yaml
from cluster.settings.system_settings import SystemSettings

# A name has no dot, which separates keys of settings, and no slash, because run files are named
# after presets.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ENDING = ".yaml"

# The custom presets of this process.
_named: dict[str, SystemSettings] = {}


def _in_folder(folder: str) -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in (CONFIGS / folder).iterdir() if p.name.endswith(ENDING)))


@cache
def paper_runs() -> tuple[str, ...]:
    """Return the names of the presets in configs/systems/runs."""
    return _in_folder("systems/runs")


@cache
def shipped_systems() -> tuple[str, ...]:
    """Return the names of all shipped presets, including the papers' runs."""
    return tuple(sorted((*_in_folder("systems"), *paper_runs())))


def system_names() -> list[str]:
    """Return the names of the presets that this process lists."""
    return sorted([*(set(shipped_systems()) - set(paper_runs())), *_named])


def is_system(name: str) -> bool:
    """Return whether this process has a preset of this name, listed or not."""
    return name in _named or name in shipped_systems()


def name_systems(systems: Mapping[str, SystemSettings]) -> None:
    """Set the custom presets of this process, replacing earlier ones.

    Call this at the start of every process that loads presets by name, with `serve.systems`.
    """
    _named.clear()
    _named.update(systems)


def nearest_system(name: str) -> str:
    """Suggest the closest preset name, and list all names, for an error message."""
    near = difflib.get_close_matches(name[:80], [*system_names(), *paper_runs()], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}there are: {', '.join(system_names())}"


def load_system(name: str) -> SystemSettings:
    """Return the preset `name`. Raises InputError that lists the presets if it is unknown."""
    if not is_system(name):
        raise InputError(f"unknown system {cut(name)!r}; {nearest_system(name)}")
    return _named[name] if name in _named else _shipped(name)


@cache
def _shipped(name: str) -> SystemSettings:
    """Read a shipped preset; cached, because every question names a preset."""
    origin = f"systems/{'runs/' if name in paper_runs() else ''}{name}{ENDING}"
    return as_system(name, read_yaml(read_config(CONFIGS / origin, origin), origin), origin)


def is_file(system: str) -> bool:
    """Return whether `system` is the path of a preset file rather than a name."""
    return system.endswith(ENDING)


def name_of(file: str) -> str:
    """Return the preset name for `file`: its stem. Raises InputError if it is not a valid name."""
    return _checked_name(Path(file).name.removesuffix(ENDING), file)


def read_system(file: str) -> SystemSettings:
    """Read the preset in `file`. Raises InputError that names the file and the problem."""
    return as_system(name_of(file), read_yaml(read_config(Path(file), file), file), file)


def as_system(name: str, data: Mapping[str, Any], origin: str) -> SystemSettings:
    """Build the preset `name` from `data`, merged over the shipped preset in `over`, if any.

    Raises InputError that names `origin` for an unknown key, an invalid value or an unknown `over`.
    """
    own = dict(data)
    if (over := own.pop("over", None)) is not None:
        if over not in shipped_systems():
            known = ", ".join(shipped_systems())
            raise InputError(
                f"{origin}: over: {cut(str(over))} is not a shipped preset; there are: {known}"
            )
        changed = {"about": f"{over}, changed.", "name": name, **own}
        own = merge(_shipped(str(over)).model_dump(), changed)
    if (called := own.get("name", name)) != name:
        raise InputError(
            f"{origin}: name: {cut(repr(called))} is not the name {name}: remove this key"
        )
    try:
        return SystemSettings.model_validate({"about": "", **own, "name": name})
    except ValidationError as error:
        raise explain(error, SystemSettings, origin) from error


def vary(system: SystemSettings, key: str, value: Any) -> SystemSettings:
    """Return the preset with `value` at `key`, such as rerank.depth; its name contains both.

    Raises InputError for an unknown key or an invalid value.
    """
    changed: Any = value
    for part in reversed(key.split(".")):
        changed = {part: changed}
    # Run files have this name, so replace characters that are invalid in file names.
    name = f"{system.name}.{key}={re.sub('[^0-9A-Za-z._-]', '-', str(value))}"
    data = merge(system.model_dump(), changed)
    try:
        return SystemSettings.model_validate({**data, "name": name})
    except ValidationError as error:
        raise explain(error, SystemSettings, f"--vary {cut(f'{key}={value}')}") from error


def _checked_name(name: str, origin: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{cut(origin)}: {cut(name)!r} is not a valid preset name: use lower-case letters, "
            "digits, - and _"
        )
    if name in shipped_systems():
        raise InputError(
            f"{cut(origin)}: {name} is the name of a shipped preset; choose another name"
        )
    return name


def _all_read(value: Any) -> Any:
    """Read each preset of a mapping: a file's path, a mapping, or a preset read before."""
    if not isinstance(value, Mapping):
        return value
    return {str(name): _read(str(name), given) for name, given in value.items()}


def _read(name: str, given: Any) -> SystemSettings:
    origin = f"serve.systems.{name}"
    _checked_name(name, origin)
    if isinstance(given, SystemSettings):
        return given
    if isinstance(given, str):
        return as_system(name, read_yaml(read_config(Path(given), given), given), given)
    if not isinstance(given, Mapping):
        raise InputError(f"{origin}: expected a file or a mapping, got {cut(repr(given))}")
    return as_system(name, given, origin)


NamedSystems = Annotated[Mapping[str, SystemSettings], BeforeValidator(_all_read)]
