"""Cache records of models that run on OpenVINO, so that later processes do not import torch.

A record is a JSON file in the model store. Its key is a hash of the files in the model's folder,
the settings, the package versions and the processor, so that no other conditions match it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cluster.errors import CiteRayError
from cluster.models.model_cache.converted_model import ConvertedModel, openvino, processor
from cluster.models.store import ModelStore
from cluster.parse_json import parse_json
from cluster.settings.stages.encoder import EncoderSettings
from cluster.storage.whole_files import sha256_of, write_atomically

# Lowest accepted cosine between the results of OpenVINO and of torch in the same number type, and
# between vectors of the same text in two number types (`cluster.models.check_dtype`).
MIN_COSINE = 0.999
PACKAGES = ("openvino", "torch", "transformers", "sentence-transformers", "tokenizers")
PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
# If one of these exists, "auto" may mean a GPU, which only torch can determine.
_GPUS = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")

log = logging.getLogger("citeray")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Settings under which the model in `folder` runs; see `EncoderSettings`."""

    folder: Path
    device: str
    dtype: str
    runtime: str
    threads: int | None

    @classmethod
    def of(cls, settings: EncoderSettings, folder: Path) -> Self:
        """Return the conditions for the encoder or the reader in `folder`."""
        how = (settings.device, settings.dtype, settings.runtime, settings.threads)
        return cls(folder, *how)

    @property
    def is_cacheable(self) -> bool:
        """Whether the model may run on OpenVINO on a CPU, and OpenVINO is installed."""
        on_cpu = self.device == "cpu" or (
            self.device == "auto" and not any(Path(path).exists() for path in _GPUS)
        )
        return on_cpu and self.runtime != "torch" and bool(_version("openvino"))

    @property
    def record(self) -> Path:
        """Path of the cache record for these conditions."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        parts = [f"{path.relative_to(self.folder)} {sha256_of(path)}" for path in files]
        parts += [f"{name} {_version(name)}" for name in PACKAGES]
        parts += [self.device, self.dtype, self.runtime, str(self.threads), processor()]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return ModelStore(pins={}).root / "kept" / f"{digest}.json"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """Cache record of a converted model.

    `converted` is the folder of the converted model, `dtype` its number type, `names` are the
    names of its inputs, and `most` is the longest text in tokens. `facts` are further values that
    the encoder or reader needs, such as its padding.
    """

    converted: str
    names: list[str]
    dtype: str
    most: int
    facts: dict[str, Any]

    def load(self, threads: int | None) -> ConvertedModel:
        """Load the model and compile it for this CPU."""
        model = openvino().Core().read_model(Path(self.converted) / "model.xml")
        return ConvertedModel(model, self.names, PRECISIONS[self.dtype], threads, self.most)


def find_entry(conditions: Conditions) -> CacheEntry | None:
    """Return the cache record for these conditions; None if it is missing or unreadable."""
    if not conditions.is_cacheable:
        return None
    with suppress(OSError, CiteRayError, TypeError):
        record = conditions.record
        kept = CacheEntry(**parse_json(record.read_text(encoding="utf-8"), str(record)))
        return kept if (Path(kept.converted) / "model.xml").is_file() else None
    return None


def write_record(conditions: Conditions, kept: CacheEntry) -> None:
    """Write the cache record; if the store is not writable, only log it."""
    try:
        record = conditions.record
        record.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(record, json.dumps(asdict(kept)).encode())
    except (OSError, CiteRayError) as error:
        log.info("%s: the cache record is not written (%s)", conditions.folder, error)


def agree(wanted: NDArray[np.float32], found: NDArray[np.float32]) -> bool:
    """Return whether all pairs of rows (n, d) have a cosine of MIN_COSINE; False for any NaN."""
    if wanted.shape != found.shape:
        return False
    lengths = np.linalg.norm(wanted, axis=1) * np.linalg.norm(found, axis=1)
    return bool(((wanted * found).sum(1) >= MIN_COSINE * lengths).all())


def has_mean_pooling(modules: Mapping[str, Any]) -> bool:
    """Return whether a sentence-transformers model is a transformer with mean pooling only.

    `modules` maps class names to the model's modules, in their order. Normalisation may follow.
    """
    names = list(modules)
    mean = getattr(modules.get("Pooling"), "pooling_mode", None) == "mean"
    return mean and names in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
