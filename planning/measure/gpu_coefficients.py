"""Speed of a GPU, as `python -m benchmarks.gpu_check` writes it on a machine that has one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from cluster.errors import InputError
from cluster.problem_words import problem_words
from cluster.settings.fields import Strict

Model = TypeVar("Model", bound=Strict)
Rate = Annotated[float, Field(gt=0)]
# Documents per second by the number of documents in a batch.
Rates = Annotated[dict[Annotated[int, Field(gt=0)], Rate], Field(min_length=1)]


class GpuCoefficients(Strict):
    """Rates of one GPU, for documents of `mean_tokens_per_document` tokens.

    `encoder_documents_per_s_with_tokens` also computes the token vectors. `graph_vectors_per_s` is
    the rate at which CAGRA builds a graph (`python -m benchmarks.bench_cagra`), if it was measured.
    `memory_bytes` is the GPU's memory.
    """

    kind: Literal["gpu-coefficients"]
    device: str
    encoder_documents_per_s: Rates
    encoder_documents_per_s_with_tokens: Rates
    cross_encoder_pairs_per_s: Rate
    mean_tokens_per_document: Rate
    graph_vectors_per_s: Rate | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None

    def encode_seconds(self, tokens: float, batch: int, *, store_tokens: bool) -> float:
        """Return the seconds per passage of `tokens` tokens, by the batch size nearest to `batch`.

        The time is taken to be proportional to the number of tokens.
        """
        measured = self.encoder_documents_per_s
        rates = self.encoder_documents_per_s_with_tokens if store_tokens else measured
        rate = rates[min(rates, key=lambda size: abs(size - batch))]
        return tokens / (rate * self.mean_tokens_per_document)


def read_model(kind: type[Model], path: Path, origin: str, mend: str) -> Model:
    """Read a JSON file. InputError names its `origin`, the first error and how to `mend` it."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{origin}: cannot be read ({error}); {mend}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(f"{origin}: {place}: {problem_words(first)}; {mend}") from error


def read_gpu_coefficients(path: Path) -> GpuCoefficients:
    """Read the file of `--gpu`; raise InputError if it is missing or invalid."""
    mend = "write it with `python -m benchmarks.gpu_check` on a machine with a GPU"
    return read_model(GpuCoefficients, path, f"--gpu {path}", mend)
