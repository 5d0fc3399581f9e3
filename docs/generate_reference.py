"""The reference pages that are made from code: commands, settings, presets.

A page in docs/reference/ holds a marker for each, such as `<!-- generated: commands -->`, which
`docs/build_site.py` replaces when the site is built, so that no copy of the code can go stale.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cluster.settings.presets import load_system, paper_runs, system_names
from cluster.settings.settings import Settings, load_settings
from cluster.settings.system_settings import SystemSettings
from commands.cli import COMMANDS, load_command

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
# Files laid over laptop.yaml, as `--config` takes them.
OVERLAYS = ("laptop-hub.yaml", "gpu-node.yaml", "cluster.yaml")
# Typer adds these to every program; they install shell completion.
COMPLETION = {"--install-completion", "--show-completion"}
# A cell of a longer value is cut: the whole of it stands in the YAML file.
MAX_CELL = 90


def render_commands() -> str:
    """Every command with its help, arguments and options, in the order of `citeray --help`."""
    return "\n".join(
        line
        for name in COMMANDS
        for path, command in _leaves(name, load_command(name))
        for line in _command(path, command)
    )


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands below a group, with their full names; a command that is no group itself."""
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from _leaves(f"{path} {name}", child)


def _command(path: str, command: Any) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    yield f"## citeray {path}\n"
    yield f"{_paragraphs(command.help or '')}\n"
    rows = [
        (f"`{left.removesuffix(' <bool>')}`", right)
        for parameter in command.params
        if not COMPLETION & set(parameter.opts)
        for left, right in [parameter.get_help_record(context) or ("", "")]
        if left
    ]
    yield from _table(("argument or option", "meaning"), rows)
    yield ""


def render_settings() -> str:
    """Every key of the settings: what it may be, and what each shipped file makes of it."""
    shipped = {name: load_settings(name).model_dump() for name in ("laptop.yaml", *OVERLAYS)}
    notes = comments((CONFIGS / "laptop.yaml").read_text(encoding="utf-8"))
    return "\n".join(_sections(Settings, (), shipped, notes, {}))


def _sections(
    model: type[BaseModel],
    path: tuple[str, ...],
    shipped: Mapping[str, Mapping[str, Any]],
    notes: Mapping[str, str],
    parts: dict[type[BaseModel], str],
) -> Iterator[str]:
    """A section a model, its nested models after it.

    `parts` has the key at which a model that may be left out, or come in a list, has its section.
    """
    rows: list[tuple[str, ...]] = []
    below: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        nested, place = _nested(field), (*path, name)
        is_part = not isinstance(_at(shipped["laptop.yaml"], place), Mapping)
        if nested in parts and is_part:
            rows.append((f"`{'.'.join(place)}`", f"the keys of `{parts[nested]}`", "", "", ""))
            continue
        if nested is None or is_part or _may_be_a_word(field):
            rows.append(_setting(place, field, shipped, notes))
        if nested is not None:
            below.append((name, nested))
            if is_part:
                parts[nested] = ".".join(place)
    if path:
        yield f"## {'.'.join(path)}\n"
        yield f"{_paragraphs(_own_docstring(model))}\n"
    if rows:
        yield from _table(("key", "values", "`laptop.yaml`", "other files", "note"), rows)
        yield ""
    for name, nested in below:
        yield from _sections(nested, (*path, name), shipped, notes, parts)


def _setting(
    path: tuple[str, ...],
    field: FieldInfo,
    shipped: Mapping[str, Mapping[str, Any]],
    notes: Mapping[str, str],
) -> tuple[str, ...]:
    key = ".".join(path)
    default = _at(shipped["laptop.yaml"], path)
    if default is _ABSENT:
        return f"`{key}`", allowed(field), _default(field), "", notes.get(key, "")
    others = [
        f"{_cell(value)} (`{name}`)"
        for name in OVERLAYS
        if (value := _at(shipped[name], path)) not in (default, _ABSENT)
    ]
    return f"`{key}`", allowed(field), _cell(default), "; ".join(others), notes.get(key, "")


def render_presets() -> str:
    """The shipped presets, then every key that a preset may have."""
    rows = [(f"`{name}`", load_system(name).about) for name in system_names()]
    runs = [(f"`{name}`", load_system(name).about) for name in paper_runs()]
    differences = [
        f"### {name}\n\n{text}\n"
        for name in system_names()
        if (text := head(CONFIGS / "systems" / f"{name}.yaml"))
    ]
    parts = [
        "## Shipped presets\n",
        *_table(("preset", "about"), rows),
        "",
        "## Single runs of the papers\n",
        "`--system` and `system` in a request take these too; lists of presets leave them out.\n",
        *_table(("preset", "about"), runs),
        "",
        "## Differences from the papers\n",
        "The comment at the head of each file of `configs/systems/`.\n",
        *differences,
        "## Keys of a preset\n",
        *_preset_keys(SystemSettings, "", {}),
    ]
    return "\n".join(parts)


def _preset_keys(
    model: type[BaseModel], path: str, known: dict[type[BaseModel], str]
) -> Iterator[str]:
    """A section a model; `known` has the key at which each model has had its section."""
    known[model] = path
    yield f"### {path or 'The preset itself'}\n"
    yield f"{_paragraphs(_own_docstring(model))}\n"
    below: list[tuple[type[BaseModel], str]] = []
    rows = []
    for name, field in model.model_fields.items():
        key = f"{path}.{name}" if path else name
        nested = _nested(field)
        if nested is None:
            rows.append((f"`{key}`", allowed(field), _default(field)))
        elif nested in known:
            rows.append((f"`{key}`", f"the keys of `{known[nested]}`", ""))
        else:
            known[nested] = key
            below.append((nested, key))
            rows.append((f"`{key}`", "the keys below", ""))
    yield from _table(("key", "values", "default"), rows)
    yield ""
    for nested, key in below:
        yield from _preset_keys(nested, key, known)


def head(path: Path) -> str:
    """The comment that a YAML file begins with, as Markdown: its lines of `- ` are a list."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment: list[str] = []
    for line in lines:
        if not line.startswith("#"):
            break
        text = line.removeprefix("#").removeprefix(" ")
        # Markdown begins a list only after a blank line.
        if text.startswith("- ") and comment and not comment[-1].startswith(("- ", "  ")):
            comment.append("")
        comment.append(text)
    return "\n".join(comment)


def comments(text: str) -> dict[str, str]:
    """What a YAML file says of each key at the end of its line, by the key with its dots."""
    node = yaml.compose(text)
    lines = text.splitlines()
    found: dict[str, str] = {}
    for path, line in _key_lines(node, ()):
        comment = re.search(r"\s#\s+(.*)$", lines[line])
        if comment:
            found[".".join(path)] = comment[1]
    return found


def _key_lines(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        own = (*path, key.value)
        # The comment of a map on one line is its last key's; a map below says its own.
        if not isinstance(value, yaml.MappingNode):
            yield own, key.start_mark.line
        yield from _key_lines(value, own)


def allowed(field: FieldInfo) -> str:
    """The values that a field takes, as its type and limits say."""
    limits = [
        f"{sign} {getattr(item, name):,}"
        for item in field.metadata
        for name, sign in (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
        if getattr(item, name, None) is not None
    ]
    return ", ".join([_type(field.annotation), *limits])


def _type(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if arguments := [a for a in get_args(annotation) if a not in (type(None), Ellipsis)]:
        origin = get_origin(annotation)
        inner = " or ".join(dict.fromkeys(_type(a) for a in arguments))
        if origin is tuple:
            return f"list of {inner}"
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return "map"
        # Of Annotated the first argument is the type, of a union each.
        return _type(arguments[0]) if hasattr(annotation, "__metadata__") else inner
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "the keys of its section"
    names = {"str": "text", "int": "integer", "float": "number", "bool": "true, false"}
    name = getattr(annotation, "__name__", str(annotation))
    return names.get(name, name.lower())


def _nested(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds: itself, in a list, or where there may be none.

    A preset, which settings may hold, has a page of its own.
    """
    waiting: list[Any] = [field.annotation]
    while waiting:
        candidate = waiting.pop()
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return None if candidate is SystemSettings else candidate
        waiting += get_args(candidate)
    return None


def _may_be_a_word(field: FieldInfo) -> bool:
    """Whether a word may stand in the place of the keys of a nested model."""
    return any(get_origin(choice) is Literal for choice in get_args(field.annotation))


def _own_docstring(model: type[BaseModel]) -> str:
    """The class's docstring, or that of the first base that has one; not pydantic's."""
    for base in model.__mro__:
        if base is BaseModel:
            break
        if text := base.__dict__.get("__doc__"):
            return str(text)
    return ""


def _default(field: FieldInfo) -> str:
    return "required" if field.default is PydanticUndefined else _cell(field.default)


_ABSENT = object()


def _at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a key; _ABSENT below what the file leaves out, or has in a list."""
    found: Any = values
    for part in path:
        if not isinstance(found, Mapping):
            return _ABSENT
        found = found[part]
    return found


def _cell(value: Any) -> str:
    """A value as YAML would have it, in code; nothing for none."""
    if value is None or value == "":
        return ""
    plain = list(value) if isinstance(value, tuple) else value
    plain = str(plain) if isinstance(plain, Path) else plain
    text = yaml.safe_dump(plain, default_flow_style=True, width=10**6, allow_unicode=True)
    text = text.removesuffix("\n").removesuffix("\n...").strip()
    return f"`{text if len(text) <= MAX_CELL else text[: MAX_CELL - 3] + '...'}`"


def _paragraphs(docstring: str) -> str:
    return inspect.cleandoc(docstring)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(names)} |"
    yield f"|{' --- |' * len(names)}"
    for row in rows:
        cells = (" ".join(cell.split()).replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": render_commands,
    "settings": render_settings,
    "presets": render_presets,
}
