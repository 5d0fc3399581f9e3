"""Run a model that was converted for OpenVINO on this CPU, without importing torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Limit of OpenVINO's kernel cache, which has several entries for each batch shape. With the default
# of 5,000, the batches of a build would fill gigabytes; a much lower limit would be slower.
MAX_KERNELS = 128
# Lengths are padded to multiples of this many tokens.
LENGTHS = 16

Ids = NDArray[np.int64]


class ConvertedModel:
    """A converted `model` with dynamic batch sizes and lengths; `names` are its input names.

    `precision` is OpenVINO's name of the number type, `most` the longest text in tokens. Lengths
    are padded to multiples of LENGTHS, since kernels are compiled for each new shape. Calls from
    several threads run one after another, each on `threads` threads; None uses all cores.
    """

    def __init__(
        self, model: Any, names: Sequence[str], precision: str, threads: int | None, most: int
    ) -> None:
        self.names = tuple(names)
        self.most = most
        self._request = compile_for_cpu(model, precision, threads)
        self._lock = Lock()

    def run(self, inputs: Mapping[str, Ids]) -> NDArray[np.float32]:
        """Return the output (texts, tokens, width) for inputs (texts, tokens).

        Padding that is added here is masked and removed from the output.
        """
        given = dict(inputs)
        if "token_type_ids" in self.names and "token_type_ids" not in given:
            # The model's own default for rows of a single text.
            given["token_type_ids"] = np.zeros_like(given["input_ids"])
        if given.keys() != set(self.names):
            raise ValueError(f"the model was compiled for {list(self.names)}, not {list(given)}")
        length = next(iter(given.values())).shape[1]
        wide = max(min(-(-length // LENGTHS) * LENGTHS, self.most), length)
        filled = {k: np.pad(v, ((0, 0), (0, wide - length))) for k, v in given.items()}
        with self._lock:
            found: NDArray[np.float32] = self._request.infer(filled)[0]
        return found[:, :length]


def processor() -> str:
    """Return the processor's name and its number of cores."""
    return f"{openvino().Core().get_property('CPU', 'FULL_DEVICE_NAME')}, {os.cpu_count()} cores"


def compile_for_cpu(model: Any, precision: str, threads: int | None) -> Any:
    """Compile `model` and return an inference request, which one thread at a time may use."""
    options: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": precision,
        # With pinning, every process would pin its threads to the same first cores.
        "ENABLE_CPU_PINNING": False,
        "CPU_RUNTIME_CACHE_CAPACITY": MAX_KERNELS,
    }
    if threads:
        options["INFERENCE_NUM_THREADS"] = threads
    return openvino().Core().compile_model(model, "CPU", options).create_infer_request()


def openvino() -> Any:
    """Import the package openvino, with its telemetry disabled, and return it."""
    # OpenVINO sends usage data over the network with this package if it is installed. If the import
    # fails, OpenVINO uses a stub of its own.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino as package

    return package
