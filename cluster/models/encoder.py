"""Encode texts as vectors with a sentence-transformers model.

Batches hold texts of similar length, and the next batch is tokenised while the model runs, since
fast tokenisers and torch's kernels both release the GIL. Any encoder that sentence-transformers
loads from a folder works; code in a model's folder is never run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor
from torch.nn.functional import normalize
from transformers.utils import logging as transformers_logging

from cluster.errors import InputError
from cluster.index.tokens.codec import TokenCodec
from cluster.models.batches import batched, batched_by_length, moved, one_ahead, padded, pinned
from cluster.models.compress_tokens import Compress, make_compress
from cluster.models.embedded import NO_CODES, Embedded, QuestionVectors
from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFELY, unloadable
from cluster.models.model_cache.cache_entries import Conditions, has_mean_pooling
from cluster.models.model_cache.converted_encoder import cache_encoder
from cluster.models.openvino_runtime import (
    PROBE_PASSAGES,
    PROBE_QUESTIONS,
    Runtime,
    cache_record,
    choose_runtime,
)
from cluster.settings.stages.encoder import EncoderSettings
from cluster.text.tokenise import Tokenise, Tokens

Vectors = NDArray[np.float32]
# The positions of a batch's texts in the input, and the model's output for them.
Output = tuple[list[int], dict[str, Tensor]]
PROBE = "The TP53 gene, \u03b1-synuclein and na\u00efve B cells"


class Encoder:
    """A sentence encoder loaded from `model_dir`.

    Texts are truncated to `max_tokens` (default: the model's limit). `batch_size` is in texts.
    `threads` sets the number of torch's threads for the whole process. `runtime` is the runtime of
    the forward pass on a CPU: torch, openvino, or "auto", which is openvino if it is installed.
    Raises InputError if the folder does not load, the dtype or device is unknown, `max_tokens`
    exceeds the model's limit, or `runtime` is not available.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int | None = None,
        batch_size: int = 32,
        threads: int | None = None,
        query_prefix: str = "",
        runtime: Runtime = "torch",
    ) -> None:
        self._threads = threads
        self.name = model_dir.name
        self.batch_size = batch_size
        self.query_prefix = query_prefix
        self.device = choose_device(device)
        number_type = choose_dtype(dtype, self.device)
        # Number type of the computation, such as "bfloat16".
        self.dtype = str(number_type).removeprefix("torch.")
        self._model = _load(model_dir, self.device, number_type)
        self._tokenizer = self._model.tokenizer
        self._edges = edge_tokens(self._tokenizer)
        # Truncation and padding are state of the tokeniser, so calls from threads are serialised.
        self._tokenizing = Lock()
        if max_tokens is not None:
            self._limit(max_tokens)
        self.runtime = self._choose_runtime(runtime, number_type)
        if self.runtime == "openvino":
            self._cache(Conditions(model_dir, device, dtype, runtime, threads))

    @classmethod
    def by(cls, settings: EncoderSettings, model_dir: Path) -> Self:
        """Load the encoder in `model_dir` with `settings`; raises the constructor's errors."""
        encoder = cls(
            model_dir,
            device=settings.device,
            dtype=settings.dtype,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            threads=settings.threads,
            query_prefix=settings.query_prefix,
            runtime=settings.runtime,
        )
        if settings.dimensions not in (None, encoder.dimensions):
            raise InputError(
                f"encoder.dimensions {settings.dimensions}: {settings.model} has "
                f"{encoder.dimensions}; correct the setting or remove it"
            )
        return encoder

    @property
    def dimensions(self) -> int:
        """Length of each vector; 0 if the model does not report it."""
        return int(self._model.get_embedding_dimension() or 0)

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of a text, including special tokens."""
        return int(self._model.max_seq_length or self._tokenizer.model_max_length)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (n, dimensions), float32, in the order of `texts`."""
        return self._collect(len(texts), self._run(texts), None).vectors

    def compress_by(self, codec: TokenCodec, pool: int) -> Compress:
        """Return a function that quantises token vectors on this encoder's device.

        It pools `pool` tokens of a text, on average, into one vector first.
        """
        return make_compress(codec, self.device, pool)

    def embed(self, texts: Sequence[str], compress: Compress | None) -> Embedded:
        """Return the vectors of `encode` and the token codes, computed in one forward pass.

        Special tokens and padding have no codes. Without `compress`, the codes are empty.
        """
        return self._collect(len(texts), self._run(texts), compress)

    def embed_tokens(self, tokens: Sequence[Tokens], compress: Compress | None) -> Embedded:
        """Like `embed`, for token ids from `cluster.text.tokenise`, including special tokens.

        A batch holds at most `batch_size` * `max_tokens` tokens, including padding.
        """
        lengths = [len(ids) for ids in tokens]
        batches = list(batched_by_length(lengths, self.batch_size * self.max_tokens))
        pad, left = self._tokenizer.pad_token_id or 0, self._tokenizer.padding_side == "left"
        outputs = self._run_batches(
            batches, lambda batch: padded([tokens[i] for i in batch], pad, left)
        )
        return self._collect(len(tokens), outputs, compress)

    def _collect(self, rows: int, outputs: Iterable[Output], compress: Compress | None) -> Embedded:
        found = [
            (
                places,
                normalize(output["sentence_embedding"].float(), dim=-1),
                self._coded(output, compress) if compress else None,
            )
            for places, output in outputs
        ]
        # Copy results to the CPU at the end: each copy waits for the GPU, which would be idle
        # between batches.
        vectors = np.zeros((rows, self.dimensions), dtype=np.float32)
        codes = [NO_CODES] * rows
        for places, unit, coded in found:
            vectors[places] = unit.cpu().numpy()
            if coded:
                counts = coded[1].cpu().numpy()
                parts = np.split(coded[0].cpu().numpy(), np.cumsum(counts)[:-1])
                for position, part in zip(places, parts, strict=True):
                    codes[position] = part
        return Embedded(vectors, codes)

    def _coded(self, output: dict[str, Tensor], compress: Compress) -> tuple[Tensor, Tensor]:
        """Return the codes of the tokens, text by text, and the number of codes of each text."""
        inner = ~torch.isin(output["input_ids"], self._edges.to(output["input_ids"].device))
        own = normalize(output["token_embeddings"][inner].float(), dim=-1)
        return compress(own, inner.sum(1))

    def encode_queries(self, texts: Sequence[str]) -> list[QuestionVectors]:
        """Return the vectors of questions, each encoded with `query_prefix` before it.

        Token vectors of the prefix and of special tokens are left out.
        """
        skipped = len(self.token_offsets(self.query_prefix))
        found: dict[int, QuestionVectors] = {}
        for places, output in self._run([self.query_prefix + text for text in texts]):
            vectors = normalize(output["sentence_embedding"].float(), dim=-1).cpu().numpy()
            for position, vector, tokens in zip(places, vectors, self._own(output), strict=True):
                found[position] = QuestionVectors(vector, tokens[skipped:].astype(np.float16))
        return [found[position] for position in range(len(texts))]

    def token_vectors(self, texts: Sequence[str], batch_size: int | None = None) -> list[Vectors]:
        """Return each text's normalised last hidden states, of shape (tokens, width), float32.

        Special tokens and padding are left out, so an empty text gives (0, width). `batch_size` is
        in texts (default: the encoder's own).
        """
        found: dict[int, Vectors] = {}
        for places, output in self._run(texts, batch_size):
            found.update(zip(places, self._own(output), strict=True))
        return [found[position] for position in range(len(texts))]

    def _own(self, output: dict[str, Tensor]) -> Iterator[Vectors]:
        """Yield the normalised token vectors of each text, without special tokens and padding."""
        unit = normalize(output["token_embeddings"].float(), dim=-1).cpu().numpy()
        inner = ~torch.isin(output["input_ids"].cpu(), self._edges).numpy()
        for vectors, keep in zip(unit, inner, strict=True):
            yield vectors[keep]

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return (begin, end) of every token of the whole text, in code points, end exclusive."""
        with self._tokenizing:
            encoded = self._tokenizer(
                text,
                add_special_tokens=False,
                return_offsets_mapping=True,
                truncation=False,
                verbose=False,
            )
        return [(int(begin), int(end)) for begin, end in encoded["offset_mapping"]]

    def check_tokeniser(self, tokenise: Tokenise) -> None:
        """Raise InputError unless `tokenise` gives the same tokens as the model's preprocessing."""
        if tokenise([PROBE])[0].tolist() != self._tokenize([PROBE])["input_ids"][0].tolist():
            raise InputError(
                f"{self.name}: its tokeniser gives other tokens than its preprocessing: set "
                "lower-casing in tokenizer_config.json, not in sentence_bert_config.json"
            )

    def _choose_runtime(self, runtime: Runtime, number_type: torch.dtype) -> str:
        """Choose the runtime and return its name; OpenVINO replaces only the forward pass."""
        if not isinstance(self._model[0], Transformer):
            return "torch"
        probes = [PROBE_QUESTIONS, PROBE_PASSAGES, *([question] for question in PROBE_QUESTIONS)]
        return choose_runtime(
            self._model[0].model,
            [partial(self._probe, texts) for texts in probes],
            runtime=runtime,
            device=self.device,
            dtype=number_type,
            threads=self._threads,
            name=self.name,
        )

    def _cache(self, conditions: Conditions) -> None:
        modules = {type(module).__name__: module for module in self._model}
        facts = {"edges": self._edges.tolist(), "dimensions": self.dimensions}
        kept = cache_record(self._model[0].model, self._tokenizer, conditions, **facts)
        if kept is not None and has_mean_pooling(modules):
            cache_encoder(conditions, kept, PROBE_PASSAGES, self)

    def _probe(self, texts: Sequence[str]) -> Tensor:
        outputs = self._run(texts, len(texts))
        return torch.cat([output["sentence_embedding"] for _, output in outputs])

    def _limit(self, max_tokens: int) -> None:
        limit = int(self._tokenizer.model_max_length)
        if not 2 < max_tokens <= limit:
            raise InputError(
                f"max_tokens is {max_tokens}, but {self.name} takes from 3 to {limit}: "
                "set it within this range"
            )
        self._model.max_seq_length = max_tokens

    def _run(self, texts: Sequence[str], batch_size: int | None = None) -> Iterator[Output]:
        size = batch_size or self.batch_size
        lengths = self._token_counts(texts) if len(texts) > size else [0] * len(texts)
        # Longest first, so that a batch that does not fit in memory fails at once.
        order = sorted(range(len(texts)), key=lambda position: -lengths[position])
        batches = list(batched(order, size))
        return self._run_batches(batches, lambda batch: self._tokenize([texts[i] for i in batch]))

    def _token_counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; a number of characters predicts it badly."""
        with self._tokenizing:
            found = self._tokenizer(
                list(texts), truncation=True, max_length=self.max_tokens, verbose=False
            )
        return [len(ids) for ids in found["input_ids"]]

    def _run_batches(
        self, batches: Sequence[list[int]], prepare: Callable[[list[int]], dict[str, Any]]
    ) -> Iterator[Output]:
        """Yield each of `batches` (positions) with the model's output for its prepared features."""
        if self._threads:
            # OpenMP keeps this setting for each calling thread. Ray and Serve call from their own
            # threads with OMP_NUM_THREADS=1, so that setting it at load time is not enough.
            torch.set_num_threads(self._threads)
        device = torch.device(self.device)
        prepared = one_ahead(lambda batch: pinned(prepare(batch), device), batches)
        for batch, features in zip(batches, prepared, strict=True):
            with torch.inference_mode():
                output = self._model(moved(features, device))
            yield batch, output

    def _tokenize(self, texts: list[str]) -> dict[str, Any]:
        with self._tokenizing:
            features: dict[str, Any] = self._model.preprocess(texts)
        return features


def _load(model_dir: Path, device: str, dtype: torch.dtype) -> SentenceTransformer:
    if not (model_dir / "config.json").is_file():
        raise InputError(
            f"{model_dir} is not an encoder's folder (it has no config.json): "
            "name a model in the sentence-transformers or transformers layout"
        )
    # A progress bar of each worker would fill the log of a job.
    transformers_logging.disable_progress_bar()
    try:
        return SentenceTransformer(
            str(model_dir),
            device=device,
            **SAFELY,
            model_kwargs={"dtype": dtype, "use_safetensors": True},
        )
    except LOAD_ERRORS as error:
        raise unloadable(model_dir, "an encoder", error) from error


def edge_tokens(tokenizer: Any) -> Tensor:
    """Return the ids of all special tokens except the unknown token, which stands for text."""
    return torch.tensor(sorted(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}))
