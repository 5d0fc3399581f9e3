"""Adapters: small sets of weights that are merged once into a larger model.

An adapter is a folder as peft writes it (adapter_model.safetensors, adapter_config.json). An
adapter with a new head also has the config.json of the whole model. Its base model may be another
adapter, which is merged first. The merged model is cached in the model store as an ordinary model,
so that code that loads models does not need to support adapters.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock

from cluster.errors import InputError
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY
from cluster.models.store import ModelStore, as_transformers_folder, checksum
from cluster.parse_json import parse_json
from cluster.settings.fields import ModelSettings
from cluster.storage.whole_files import sha256_of

WEIGHTS, CONFIG, TRAINING = "adapter_model.safetensors", "adapter_config.json", "training.json"
HEADS = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "SEQ_CLS": "AutoModelForSequenceClassification",
}


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Suppress transformers' progress bars and its warning about a newly initialised head."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


class Adapted(Protocol):
    """A model name with an optional adapter."""

    @property
    def model(self) -> str:
        """The model's name; "" for the adapter's base model."""
        ...

    @property
    def adapter(self) -> str:
        """The adapter's name; "" for none."""
        ...


def full_name(named: Adapted) -> str:
    """Return the name for messages and logs: "MODEL with ADAPTER", or the one that is set."""
    return " with ".join(name for name in (named.model, named.adapter) if name)


def model_folder(named: ModelSettings, store: ModelStore | None = None) -> Path:
    """Return the folder of the model, with its adapter merged into it.

    Raises the errors of `ModelStore.resolve`, and InputError for an invalid adapter or one that
    was trained for another model.
    """
    store = store or ModelStore()
    base, adapters = _parts(named, store)
    return _merged(store, base, adapters) if adapters else base


def weights_checksum(named: ModelSettings, store: ModelStore | None = None) -> str:
    """Return the checksum of the model, or of the model and its adapter together.

    Only the weights and the configuration of an adapter count, not its model card.
    """
    base, adapters = _parts(named, store or ModelStore())
    return _joint(checksum(base), adapters)


@lru_cache(maxsize=8)
def folder_on_this_node(named: ModelSettings, sha256: str) -> Path:
    """Return `model_folder(named)`, fetched into the store of this node if it is not there yet.

    For workers, which get the name of a model and the checksum of its weights instead of a path on
    another node. Cached for the process. Raises InputError if the weights have another checksum.
    """
    folder, found = model_folder(named), weights_checksum(named)
    if found != sha256:
        raise InputError(
            f"{full_name(named)}: its weights on node {socket.gethostname()} have the checksum "
            f"{found[:12]}, but this command uses {sha256[:12]}; give every node the same model, "
            "or name one of the model hub or the package index"
        )
    return folder


def plain_model(named: ModelSettings, store: ModelStore | None = None) -> str:
    """Return the name of the model without an adapter."""
    store = store or ModelStore()
    name = named.model or named.adapter
    while is_adapter(folder := store.resolve(name)):
        name = base_of(folder)
    return name


def is_adapter(folder: Path) -> bool:
    """Return whether `folder` has peft's adapter_config.json; its weights are not checked."""
    return (folder / CONFIG).is_file()


def _parts(named: ModelSettings, store: ModelStore) -> tuple[Path, list[Path]]:
    """Return the folder of the plain model, and its adapters in the order of merging."""
    adapter = store.resolve(named.adapter) if named.adapter else None
    if not named.model and adapter is not None:
        folder, adapters = _base_parts(adapter, store, named.sha256)
        return folder, [*adapters, adapter]
    model = store.resolve(named.model, named.sha256 or None)
    if not is_adapter(model):
        return model, [adapter] if adapter else []
    folder, adapters = _base_parts(model, store)
    adapters.append(model)
    return folder, [*_below(adapter, folder, adapters), adapter] if adapter else adapters


def _base_parts(adapter: Path, store: ModelStore, sha256: str = "") -> tuple[Path, list[Path]]:
    """Return the plain model below an adapter, and the adapters of its base model, if any.

    `sha256` is the checksum of the plain model; "" expects the pinned one.
    """
    name = base_of(adapter)
    base = store.resolve(name)
    if base == adapter:
        raise InputError(f"{adapter} names itself as its base model: train it again")
    if is_adapter(base):
        folder, adapters = _base_parts(base, store, sha256)
        return folder, [*adapters, base]
    return store.resolve(name, sha256) if sha256 else base, []


def _below(adapter: Path, model: Path, adapters: Sequence[Path]) -> Sequence[Path]:
    """Return those of `adapters`, merged into `model`, that `adapter` was trained on top of."""
    wanted, found = _recorded_base(adapter).get("sha256"), checksum(model)
    counts = range(len(adapters) + 1)
    return next((adapters[:n] for n in counts if _joint(found, adapters[:n]) == wanted), [])


def base_of(adapter: Path) -> str:
    """Return the name of the adapter's base model. Raises InputError if it is not recorded."""
    adapter_checksum(adapter)
    name = read_object(adapter / CONFIG).get("base_model_name_or_path")
    if not name:
        raise InputError(f"{adapter} does not name its base model: set the model in the settings")
    return str(name)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file `path`. Raises InputError for any other content."""
    value = parse_json(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a JSON object; download the adapter again")
    return value


def adapter_checksum(folder: Path) -> str:
    """Return the checksum of an adapter. Raises InputError if `folder` is not an adapter."""
    for name in (WEIGHTS, CONFIG):
        if not (folder / name).is_file():
            raise InputError(
                f"{folder} is not an adapter ({name} is missing); train one with `citeray train`"
            )
    listing = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in (CONFIG, WEIGHTS))
    return hashlib.sha256(listing.encode()).hexdigest()


def _joint(found: str, adapters: Sequence[Path]) -> str:
    """Return the checksum of a model with the checksum `found` and its adapters."""
    for adapter in adapters:
        found = hashlib.sha256(f"{found} {adapter_checksum(adapter)}".encode()).hexdigest()
    return found


def _merged(store: ModelStore, model: Path, adapters: Sequence[Path]) -> Path:
    base = checksum(model)
    for position, adapter in enumerate(adapters):
        below = adapters[position - 1] if position else model
        _check_base(adapter, below, _joint(base, adapters[:position]))
    folder = store.root / "adapted" / _joint(base, adapters) / adapters[-1].name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / ".lock"):
            if not folder.is_dir():
                _merge(model, adapters, folder)
    return folder


def _check_base(adapter: Path, model: Path, found: str) -> None:
    """Raise InputError if the adapter was trained for another model.

    `model` may itself be an adapter; `found` is the checksum of the model that results from merging
    it. Only adapters made by `citeray train` record the checksum of their model.
    """
    base = _recorded_base(adapter)
    if base and base["sha256"] != found:
        raise InputError(
            f"{adapter} was trained for {base['model']} ({base['sha256'][:12]}), and {model} is "
            f"another model ({found[:12]}): use the former as the model, or train the adapter again"
        )


def _recorded_base(adapter: Path) -> dict[str, str]:
    """Return the name and checksum of the model that an adapter was trained on, if recorded."""
    if not (adapter / TRAINING).is_file():
        return {}
    base: dict[str, str] = read_object(adapter / TRAINING)["base"]
    return base


def _merge(model: Path, adapters: Sequence[Path], folder: Path) -> None:
    """Write the merged model to `folder` atomically, via a temporary folder."""
    aside = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    kinds = [read_object(adapter / CONFIG).get("task_type") for adapter in adapters]
    kind = kinds[-1]
    if set(kinds) != {kind}:
        raise InputError(
            f"{adapters[-1]} was trained on an adapter for another task ({kinds[-2]} instead of "
            f"{kind}): train it on a plain model"
        )
    try:
        with quiet_loading():
            if kind in HEADS:
                _merge_headed(HEADS[kind], model, adapters, aside)
            else:
                _merge_encoder(model, adapters, aside)
    except LOAD_ERRORS as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise InputError(
            f"{adapters[-1]} does not fit {model} ({str(error).splitlines()[0]}): name the model "
            "that it was trained for"
        ) from error
    aside.rename(folder)


def _merge_encoder(model: Path, adapters: Sequence[Path], target: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(
        str(model), device="cpu", **SAFELY, model_kwargs={"use_safetensors": True}
    )
    # This changes the encoder itself: its layers are replaced by the merged ones.
    _apply(adapters, encoder[0].auto_model)
    encoder.save(str(target), create_model_card=False)


def _merge_headed(kind: str, model: Path, adapters: Sequence[Path], target: Path) -> None:
    import transformers

    model, last = as_transformers_folder(model), adapters[-1]
    described = last if (last / "config.json").is_file() else model
    config = transformers.AutoConfig.from_pretrained(described, **SAFELY)
    loader: Any = getattr(transformers, kind)
    base = loader.from_pretrained(model, config=config, **SAFE_WEIGHTS)
    _apply(adapters, base).save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(model, **SAFELY).save_pretrained(target)


def _apply(adapters: Sequence[Path], model: Any) -> Any:
    """Merge each adapter into `model` and return it; its layers are changed in place."""
    from peft import PeftModel

    for adapter in adapters:
        model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    return model
