"""Read papers as data: settings and systems in `configs/papers`, tables in `configs/papers/tables`.

At full scale the settings are the paper's. At small scale they are the laptop's, except for how
abstracts are split, and the input and output of some papers' systems are limited. Models and limits
are reported as differences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from operator import getitem
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cluster.errors import InputError
from cluster.settings.presets import as_system, load_system
from cluster.settings.read_config import CONFIGS, explain, read_config, read_yaml
from cluster.settings.settings import DEFAULT_CONFIG, Settings, load_settings
from cluster.settings.system_settings import SystemSettings

Form = Literal["bioasq", "biogen-a", "biogen-b"]
Scale = Literal["full", "small"]
FOLDER = "papers"
# Sections in which the paper's settings also apply at small scale.
ANY_SCALE = ("split",)
# Long deadlines, because no user waits: a slow machine must not drop the reply of a stage.
PATIENT = (
    "serve.request_deadline_s=1800",
    "serve.writer.deadline_s=1700",
    *(
        f"serve.{stage}.deadline_s=1600"
        for stage in ("llm", "encoder", "expander", "shard", "reranker")
    ),
)
# Twenty requests run concurrently. A paper's runs send similar prompts about the same passages, so
# the KV cache holds the prompts of 20 questions, in blocks smaller than a passage. Speculative
# decoding is off, because it slows concurrent requests down.
MANY_AT_ONCE = (
    "llm.engine.kv_cache_memory_bytes=2147483648",
    "llm.engine.block_size=32",
    "llm.engine.max_num_seqs=20",
    "llm.engine.speculative_config=null",
    "serve.llm.max_ongoing=20",
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperRow(_Part):
    """A row of a paper's table; a value is None if the paper does not give it.

    `system` is the preset to run for it, such as "biorag-v1.evidence-3" for 3 passages; None if no
    preset is run.
    """

    name: str
    system: str | None = None
    values: tuple[float | None, ...]


class PaperTable(_Part):
    """A paper's table. `columns` maps the paper's column names to CiteRay's measures.

    A measure that ends in " of list" is computed over the questions of that type.
    """

    name: str
    about: str
    form: Form = "bioasq"
    columns: Mapping[str, str]
    rows: Annotated[tuple[PaperRow, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_a_value_a_column(self) -> Self:
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise ValueError(
                    f"{row.name}: {len(self.columns)} columns, {len(row.values)} values"
                )
        return self


class Paper(_Part):
    """The systems and results of a paper.

    `own` are systems in addition to the presets, `given` those that answer from the questions' own
    snippets, and `evidence` lists further runs of a system by the number of passages. `depth` is
    the number of ranked citations. `settings` replaces the paper's settings for questions of one
    form, at any scale and with a separate index. `small` limits the systems at small scale by
    dotted key, such as rerank.depth: a number is a maximum, and text replaces the value.
    """

    title: str
    data: str
    systems: tuple[str, ...]
    own: Mapping[str, Mapping[str, Any]] = {}
    given: tuple[str, ...] = ()
    evidence: Mapping[str, tuple[int, ...]] = {}
    depth: int = 10
    settings: Mapping[Form, Mapping[str, Mapping[str, Any]]] = {}
    small: Mapping[str, int | str] = {}
    answers: bool = True
    tables: tuple[PaperTable, ...]
    differences: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _runs_what_it_shows(self) -> Self:
        shown = {row.system for table in self.tables for row in table.rows if row.system}
        run = {*self.systems, *(f"{s}.evidence-{k}" for s, ks in self.evidence.items() for k in ks)}
        if missing := sorted(shown - run):
            raise ValueError(f"a table shows {missing[0]}, which is not run")
        return self

    def system(self, name: str) -> SystemSettings:
        """Return a preset or own system by name, with the limits of `small` applied."""
        own = self.own.get(name)
        found = load_system(name) if own is None else as_system(name, own, f"{FOLDER}: own.{name}")
        return _bounded(found, self.small)

    def of_form(self, form: Form) -> list[PaperTable]:
        """Return the tables over questions of a form."""
        return [table for table in self.tables if table.form == form]


@cache
def paper_names() -> tuple[str, ...]:
    """Return the numbers of the papers that can be reproduced."""
    files = (CONFIGS / FOLDER / "tables").iterdir()
    return tuple(sorted(p.name.removesuffix(".yaml") for p in files if p.name.endswith(".yaml")))


def _bounded(system: SystemSettings, small: Mapping[str, int | str]) -> SystemSettings:
    data = system.model_dump()
    for key, bound in small.items():
        *path, last = key.split(".")
        part = reduce(getitem, path, data)
        found = part[last]
        part[last] = min(found, bound) if isinstance(found, int) else bound
    return SystemSettings.model_validate(data)


def read_paper(number: str, scale: Scale = "full") -> Paper:
    """Return a paper by number, such as "002"; raise InputError for an unknown number."""
    if number not in paper_names():
        raise InputError(f"paper {number}: unknown; there are: {', '.join(paper_names())}")
    origin = f"{FOLDER}/tables/{number}.yaml"
    data = read_yaml(read_config(CONFIGS / origin, origin), origin)
    if scale == "full":
        data.pop("small", None)
    try:
        return Paper.model_validate(data)
    except ValidationError as error:
        raise explain(error, Paper, origin) from error


def paper_settings(
    number: str, scale: Scale, form: Form = "bioasq", overrides: Sequence[str] = ()
) -> Settings:
    """Return the settings to run a paper with; `overrides` take precedence over its own.

    `overrides` are texts of the form key=value. Raises InputError as `load_settings` does.
    """
    if scale == "full":
        config, own = f"{FOLDER}/{number}.yaml", _of_form(number, form)
        name = f"{number}-{form}" if own else number
    else:
        config = DEFAULT_CONFIG
        own = {k: v for k, v in _own(number, form).items() if k.split(".")[0] in ANY_SCALE}
        split = load_settings(config, _given(own)).split
        # All papers use the laptop's models, so papers with the same split share an index.
        name = f"{split.method}-{split.size}-{split.overlap}"
    index = f"index.path=.citeray/{FOLDER}/{name}-{scale}/index"
    engine = MANY_AT_ONCE if scale == "small" else ()
    return load_settings(config, [index, *PATIENT, *engine, *_given(own), *overrides])


def _given(own: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in own.items()]


def other_settings(number: str, form: Form, settings: Settings) -> list[str]:
    """Return one line for each setting of the paper whose value in `settings` differs."""
    plain = settings.model_dump(mode="json")
    return [
        f"{key}: {_shown(found)}, in the paper {_shown(value)}"
        for key, value in _own(number, form).items()
        if (found := _at(plain, key.split("."))) != value
    ]


def _own(number: str, form: Form) -> dict[str, Any]:
    """Return the paper's own settings for questions of a form, by dotted key."""
    origin = f"{FOLDER}/{number}.yaml"
    data = read_yaml(read_config(CONFIGS / origin, origin), origin)
    del data["over"]
    return _leaves(data) | _of_form(number, form)


def _of_form(number: str, form: Form) -> dict[str, Any]:
    return _leaves(read_paper(number).settings.get(form, {}))


def _leaves(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        f"{part}.{key}": value for part, values in data.items() for key, value in values.items()
    }


def _at(plain: Any, path: Sequence[str]) -> Any:
    for part in path:
        plain = plain.get(part) if isinstance(plain, Mapping) else None
    return plain


def _shown(value: Any) -> str:
    """Format a value; a model by its name, several models by their names."""
    if isinstance(value, Mapping):
        return str(value.get("model") or value.get("model_id") or value)
    if isinstance(value, (list, tuple)):
        return " and ".join(_shown(item) for item in value) or "none"
    return "none" if value in (None, "") else str(value)
