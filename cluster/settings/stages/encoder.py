"""Settings of the encoder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cluster.settings.fields import ModelSettings, Positive


class EncoderSettings(ModelSettings):
    """The encoder, and how it runs.

    During a build, `actors` actors embed in parallel, each with `gpus` GPUs or `threads` threads.
    `batch_size` is in texts. With `gpus`, a batch holds as many tokens as `batch_size` texts of
    `max_tokens`, and each actor works on two tables of passages at once.

    `adapter` is the name of an adapter made by `citeray train encoder`, which is merged into
    `model`. If `model` is an adapter itself, its base model is loaded with it.

    `runtime` is the runtime of the encoder and the reader on CPUs; "auto" is OpenVINO if installed.

    `dimensions` is the length of the vectors, for a plan without the model; a model with another
    length is refused.
    """

    model: str
    device: str
    runtime: Literal["auto", "torch", "openvino"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    max_tokens: Positive
    batch_size: Positive
    threads: Positive
    actors: Positive
    gpus: Annotated[float, Field(ge=0)]
    query_prefix: str = ""
    dimensions: Positive | None = None
