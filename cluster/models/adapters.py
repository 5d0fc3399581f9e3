"""Adapters: small sets of weights that are merged once into a larger model.

An adapter is a folder as peft writes it (adapter_model.safetensors, adapter_config.json). An
adapter with a new head also has the config.json of the whole model. The merged model is cached in
the model store as an ordinary model, so that code that loads models does not need to support
adapters.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
from collections.abc import Iterator
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
    base, adapter = _parts(named, store)
    return base if adapter is None else _merged(store, base, adapter)


def weights_checksum(named: ModelSettings, store: ModelStore | None = None) -> str:
    """Return the checksum of the model, or of the model and its adapter together.

    Only the weights and the configuration of an adapter count, not its model card.
    """
    base, adapter = _parts(named, store or ModelStore())
    found = checksum(base)
    return found if adapter is None else _joint(found, adapter_checksum(adapter))


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
    folder = store.resolve(named.model or named.adapter)
    return base_of(folder) if is_adapter(folder) else named.model


def is_adapter(folder: Path) -> bool:
    """Return whether `folder` has peft's adapter_config.json; its weights are not checked."""
    return (folder / CONFIG).is_file()


def _parts(named: ModelSettings, store: ModelStore) -> tuple[Path, Path | None]:
    """Return the folders of the model and of its adapter, if there is one."""
    adapter = store.resolve(named.adapter) if named.adapter else None
    if not named.model and adapter is not None:
        return store.resolve(base_of(adapter), named.sha256 or None), adapter
    model = store.resolve(named.model, named.sha256 or None)
    if is_adapter(model):
        return store.resolve(base_of(model)), adapter or model
    return model, adapter


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


def _joint(model: str, adapter: str) -> str:
    return hashlib.sha256(f"{model} {adapter}".encode()).hexdigest()


def _merged(store: ModelStore, model: Path, adapter: Path) -> Path:
    base = checksum(model)
    name = _joint(base, adapter_checksum(adapter))
    _check_base(adapter, model, base)
    folder = store.root / "adapted" / name / adapter.name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / ".lock"):
            if not folder.is_dir():
                _merge(model, adapter, folder)
    return folder


def _check_base(adapter: Path, model: Path, found: str) -> None:
    """Raise InputError if the adapter was trained for another model.

    Only adapters made by `citeray train` record the checksum of their model.
    """
    if not (adapter / TRAINING).is_file():
        return
    base = read_object(adapter / TRAINING)["base"]
    if base["sha256"] != found:
        raise InputError(
            f"{adapter} was trained for {base['model']} ({base['sha256'][:12]}), and {model} is "
            f"another model ({found[:12]}): use the former as the model, or train the adapter again"
        )


def _merge(model: Path, adapter: Path, folder: Path) -> None:
    """Write the merged model to `folder` atomically, via a temporary folder."""
    aside = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    kind = read_object(adapter / CONFIG).get("task_type")
    try:
        with quiet_loading():
            if kind in HEADS:
                _merge_headed(HEADS[kind], model, adapter, aside)
            else:
                _merge_encoder(model, adapter, aside)
    except LOAD_ERRORS as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise InputError(
            f"{adapter} does not fit {model} ({str(error).splitlines()[0]}): name the model that "
            "it was trained for"
        ) from error
    aside.rename(folder)


def _merge_encoder(model: Path, adapter: Path, target: Path) -> None:
    from peft import PeftModel
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(
        str(model), device="cpu", **SAFELY, model_kwargs={"use_safetensors": True}
    )
    # This changes the encoder itself: its layers are replaced by the merged ones.
    PeftModel.from_pretrained(encoder[0].auto_model, str(adapter)).merge_and_unload()
    encoder.save(str(target), create_model_card=False)


def _merge_headed(kind: str, model: Path, adapter: Path, target: Path) -> None:
    import transformers
    from peft import PeftModel

    model = as_transformers_folder(model)
    described = adapter if (adapter / "config.json").is_file() else model
    config = transformers.AutoConfig.from_pretrained(described, **SAFELY)
    loader: Any = getattr(transformers, kind)
    base = loader.from_pretrained(model, config=config, **SAFE_WEIGHTS)
    PeftModel.from_pretrained(base, str(adapter)).merge_and_unload().save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(model, **SAFELY).save_pretrained(target)
