"""Settings, read from YAML files once at program start and then passed on as arguments.

`laptop.yaml` is complete and holds the defaults. Another file overrides the keys that it contains.
With `over: cluster.yaml` at its head, it is merged over that file, which is merged over the
defaults. `--set a.b=c` overrides all files. Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from cluster.errors import InputError, cut
from cluster.settings.fields import Strict
from cluster.settings.parse_yaml import MAX_DEPTH
from cluster.settings.read_config import CONFIGS, explain, merge, place_of, read_config, read_yaml
from cluster.settings.stages.encoder import EncoderSettings
from cluster.settings.stages.entrez import EntrezSettings
from cluster.settings.stages.expander import RecogniserSettings, VocabularySettings
from cluster.settings.stages.index import IndexSettings, SplitSettings
from cluster.settings.stages.llm import LLMSettings, ModelsSettings
from cluster.settings.stages.reader import NamerSettings, ReaderSettings, SupportSettings
from cluster.settings.stages.reranker import RerankerSettings
from cluster.settings.stages.serving import ServeSettings

DEFAULT_CONFIG = "laptop.yaml"
# Keys whose mappings are replaced, not merged: a laptop's engine options would slow down a model
# on a GPU, and a preset extends another one only by its own key `over`.
WHOLE = frozenset({"engine", "environment", "systems"})


class RaySettings(Strict):
    """The local Ray, started if RAY_ADDRESS is not set; `cpus: 0` uses all cores."""

    cpus: Annotated[int, Field(ge=0)]
    object_store_mb: Annotated[int, Field(ge=128)]


class Settings(Strict):
    """All settings of a run, read once at program start (`load_settings`)."""

    ray: RaySettings
    index: IndexSettings
    split: SplitSettings
    encoder: EncoderSettings
    vocabulary: VocabularySettings
    recogniser: RecogniserSettings
    reranker: RerankerSettings
    reader: ReaderSettings
    namer: NamerSettings = NamerSettings()
    support: SupportSettings
    llm: LLMSettings
    models: ModelsSettings = ModelsSettings()
    entrez: EntrezSettings
    serve: ServeSettings

    @property
    def uses_namer(self) -> bool:
        """Whether the namer ranks names: it is set, and no other language model chooses them."""
        is_chosen_by_model = self.llm.kind != "none" and self.llm.exact_from == "model"
        return bool(self.namer.model or self.namer.adapter) and not is_chosen_by_model

    @model_validator(mode="after")
    def _zero_shot_reader_has_its_models(self) -> Self:
        if self.reader.kind == "zero-shot":
            if self.reranker.kind != "cross-encoder" or self.support.kind != "nli":
                raise ValueError(
                    "reader.kind zero-shot needs reranker.kind cross-encoder and support.kind nli"
                )
            if self.reader.calibration is None:
                raise ValueError(
                    "reader.kind zero-shot needs reader.calibration: make one with `citeray train "
                    "calibration`"
                )
        return self


def _apply_override(data: dict[str, Any], override: str) -> dict[str, Any]:
    key, separator, value = override.partition("=")
    origin = f"--set {cut(override)}"
    if not separator or not key or key.count(".") > MAX_DEPTH:
        raise InputError(f"{origin}: expected key=value, such as index.shards=4")
    if len(value.splitlines()) > 1:
        raise InputError(f"{origin}: expected a value of one line")
    nested: Any = read_yaml(f"value: {value}", origin)["value"] if value else ""
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return merge(data, nested)


def _config_text(name: str | Path) -> str:
    try:
        found = next((p for p in (Path(name), CONFIGS / str(name)) if p.is_file()), None)
    except OSError as error:
        raise InputError(f"--config {cut(str(name))}: cannot be read: {error.strerror}") from None
    if found is None:
        raise InputError(
            f"--config {name}: no such file; shipped with CiteRay: {', '.join(_shipped())}"
        )
    return read_config(found, f"--config {name}")


def _read_under(name: Any, origin: str) -> dict[str, Any]:
    """Return the shipped settings that `origin` is merged over."""
    if not isinstance(name, str) or name not in _shipped():
        raise InputError(
            f"{origin}: over: {cut(str(name))} is not a file shipped with CiteRay; there are: "
            + ", ".join(_shipped())
        )
    return read_yaml(_config_text(name), name)


def _shipped() -> list[str]:
    return sorted(p.name for p in CONFIGS.iterdir() if p.name.endswith(".yaml"))


def load_settings(config: str | Path | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Read `laptop.yaml`, merge `config` over it, then `overrides` (each `key=value`).

    A `config` may name a shipped file that it is merged over: `over: cluster.yaml`.

    Raises InputError that names every unknown key, with the nearest valid one, and every invalid
    value.
    """
    data = read_yaml(_config_text(DEFAULT_CONFIG), DEFAULT_CONFIG)
    origin = DEFAULT_CONFIG
    if config is not None and str(config) != DEFAULT_CONFIG:
        own = read_yaml(_config_text(config), str(config))
        if (under := own.pop("over", None)) is not None:
            data = merge(data, _read_under(under, str(config)), WHOLE)
        data = merge(data, own, WHOLE)
        origin = str(config)
    for override in overrides:
        data = _apply_override(data, override)
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise explain(error, Settings, _blamed(error, overrides) or origin) from error


def _blamed(error: ValidationError, overrides: Sequence[str]) -> str:
    """Return "--set" if the first problem is caused by an override; otherwise ""."""
    place = place_of(error.errors()[0])
    keys = [override.partition("=")[0] for override in overrides]
    return "--set" if any(f"{place}.".startswith(f"{key}.") for key in keys) else ""
