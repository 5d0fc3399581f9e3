"""Check that vectors computed in two number types are comparable."""

from __future__ import annotations

from pathlib import Path

from cluster.errors import IndexFormatError
from cluster.models.encoder import Encoder
from cluster.models.model_cache.cache_entries import MIN_COSINE
from cluster.models.openvino_runtime import PROBE_PASSAGES, PROBE_QUESTIONS


def check_dtype(encoder: Encoder, model_dir: Path, made_in: str) -> None:
    """Raise IndexFormatError unless `encoder` fits an index whose vectors were made in `made_in`.

    Loads the encoder's model from `model_dir` again, in that number type, and compares the vectors
    of a few texts: each pair must have a cosine of at least MIN_COSINE. Nothing is computed if the
    number types are the same, or if the index does not record its number type (""). Raises
    InputError for an unknown number type.
    """
    if made_in in ("", encoder.dtype):
        return
    other = Encoder(model_dir, device=encoder.device, dtype=made_in, max_tokens=encoder.max_tokens)
    texts = [*PROBE_QUESTIONS, *PROBE_PASSAGES]
    least = float((encoder.encode(texts) * other.encode(texts)).sum(1).min())
    # The comparison is negated so that NaN, which float16 gives on overflow, does not pass.
    if not least >= MIN_COSINE:
        raise IndexFormatError(
            f"the index's vectors were made in {made_in}, {encoder.name} runs in {encoder.dtype} "
            f"here, and vectors of the same text in the two have a cosine of {least:.4f}, below "
            f"{MIN_COSINE}; set encoder.dtype to {made_in} or build the index again"
        )
