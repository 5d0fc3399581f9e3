"""Whether vectors made in one number type may be compared with those made in another."""

from __future__ import annotations

from pathlib import Path

from cluster.errors import IndexFormatError
from cluster.models.encoder import Encoder
from cluster.models.openvino_runtime import MIN_COSINE, PROBE_PASSAGES, PROBE_QUESTIONS


def check_dtype(encoder: Encoder, model_dir: Path, made_in: str) -> None:
    """Raise IndexFormatError unless `encoder` fits an index whose vectors were made in `made_in`.

    It fits where each of a few texts has vectors of a cosine of at least MIN_COSINE in the two
    number types. Without a difference, or with "" of an index that does not say it, nothing is
    computed. `model_dir` is the encoder's own folder. Raises InputError for an unknown number type.
    """
    if made_in in ("", encoder.dtype):
        return
    other = Encoder(model_dir, device=encoder.device, dtype=made_in, max_tokens=encoder.max_tokens)
    texts = [*PROBE_QUESTIONS, *PROBE_PASSAGES]
    least = float((encoder.encode(texts) * other.encode(texts)).sum(1).min())
    # Written so that NaN, which a model may give where its numbers overflow, is refused too.
    if not least >= MIN_COSINE:
        raise IndexFormatError(
            f"the index's vectors were made in {made_in}, {encoder.name} runs in {encoder.dtype} "
            f"here, and vectors of the same text in the two have a cosine of {least:.4f}, below "
            f"{MIN_COSINE}; set encoder.dtype to {made_in} or build the index again"
        )
