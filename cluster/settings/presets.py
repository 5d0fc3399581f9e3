"""Presets by name: those shipped in configs/systems, and those that the settings name.

Those in its folder `runs`, single runs of the papers, can be named and are not offered in lists.

A preset of one's own is a YAML file, or a mapping in the settings (`serve.systems`). With
`over: citeray` at its head it says only what it changes of that preset.
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

# No dot, which parts keys of settings; no slash, since runs are named after presets.
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ENDING = ".yaml"

# Those of this process, beside the shipped ones.
_named: dict[str, SystemSettings] = {}


def _in_folder(folder: str) -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in (CONFIGS / folder).iterdir() if p.name.endswith(ENDING)))


@cache
def paper_runs() -> tuple[str, ...]:
    """The presets in configs/systems/runs, by name."""
    return _in_folder("systems/runs")


@cache
def shipped_systems() -> tuple[str, ...]:
    """The presets that ship, by name, the papers' runs among them."""
    return tuple(sorted((*_in_folder("systems"), *paper_runs())))


def system_names() -> list[str]:
    """The presets that this process offers."""
    return sorted([*(set(shipped_systems()) - set(paper_runs())), *_named])


def is_system(name: str) -> bool:
    """Whether this process has such a preset, offered or not."""
    return name in _named or name in shipped_systems()


def name_systems(systems: Mapping[str, SystemSettings]) -> None:
    """Let the presets of `systems` be asked for in this process, and no others but shipped ones.

    For where a process begins: what answers by name is given its settings' `serve.systems`.
    """
    _named.clear()
    _named.update(systems)


def nearest_system(name: str) -> str:
    """What a message says beside a preset that there is not: the likeliest one, and all."""
    near = difflib.get_close_matches(name[:80], [*system_names(), *paper_runs()], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}there are: {', '.join(system_names())}"


def load_system(name: str) -> SystemSettings:
    """The preset `name`; raises InputError naming the presets there are."""
    if not is_system(name):
        raise InputError(f"unknown system {cut(name)!r}; {nearest_system(name)}")
    return _named[name] if name in _named else _shipped(name)


@cache
def _shipped(name: str) -> SystemSettings:
    """Read once: every question names one, and YAML takes 3 ms."""
    origin = f"systems/{'runs/' if name in paper_runs() else ''}{name}{ENDING}"
    return as_system(name, read_yaml(read_config(CONFIGS / origin, origin), origin), origin)


def is_file(system: str) -> bool:
    """Whether what is given for a preset is a file of one, and not a name."""
    return system.endswith(ENDING)


def name_of(file: str) -> str:
    """The name of the preset in `file`: the file's own. Raises InputError for one that is none."""
    return _checked_name(Path(file).name.removesuffix(ENDING), file)


def read_system(file: str) -> SystemSettings:
    """The preset in `file`. Raises InputError naming the file and what is wrong with it."""
    return as_system(name_of(file), read_yaml(read_config(Path(file), file), file), file)


def as_system(name: str, data: Mapping[str, Any], origin: str) -> SystemSettings:
    """The preset `name` of plain `data`, laid over the shipped one that `over` names, if any.

    Raises InputError naming `origin` for an unknown key, a bad value or another `over`.
    """
    own = dict(data)
    if (over := own.pop("over", None)) is not None:
        if over not in shipped_systems():
            known = ", ".join(shipped_systems())
            raise InputError(f"{origin}: over: {cut(str(over))} is no shipped preset: {known}")
        changed = {"about": f"{over}, changed.", "name": name, **own}
        own = merge(_shipped(str(over)).model_dump(), changed)
    if (called := own.get("name", name)) != name:
        raise InputError(f"{origin}: name: {cut(repr(called))} is not {name}: leave it out")
    try:
        return SystemSettings.model_validate({"about": "", **own, "name": name})
    except ValidationError as error:
        raise explain(error, SystemSettings, origin) from error


def vary(system: SystemSettings, key: str, value: Any) -> SystemSettings:
    """The preset with another `value` at `key`, such as rerank.depth, named after both.

    Raises InputError for a key or a value that no preset has.
    """
    changed: Any = value
    for part in reversed(key.split(".")):
        changed = {part: changed}
    # Runs are files of this name.
    name = f"{system.name}.{key}={re.sub('[^0-9A-Za-z._-]', '-', str(value))}"
    data = merge(system.model_dump(), changed)
    try:
        return SystemSettings.model_validate({**data, "name": name})
    except ValidationError as error:
        raise explain(error, SystemSettings, f"--vary {cut(f'{key}={value}')}") from error


def _checked_name(name: str, origin: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{cut(origin)}: {cut(name)!r} cannot name a preset: take lower-case letters, digits, "
            "- and _"
        )
    if name in shipped_systems():
        raise InputError(f"{cut(origin)}: {name} is a preset that ships; take another name")
    return name


def _all_read(value: Any) -> Any:
    """Each preset of a mapping: a file's path, plain data, or what has been read already."""
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
