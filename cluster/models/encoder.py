"""Texts to vectors: one sentence-transformers model, kept busy.

Batches hold texts of like length, and the next batch is tokenised while the model runs: fast
tokenisers and torch's kernels both release the GIL. What was tokenised elsewhere is only padded.
Any encoder that sentence-transformers loads from a folder works; code in a model's folder is
never run.
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
from cluster.index.vectors import QuestionVectors
from cluster.models.batches import batched, batched_by_length, moved, one_ahead, padded, pinned
from cluster.models.compress_tokens import Compress, make_compress
from cluster.models.embedded import NO_CODES, Embedded
from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.kept.keep_models import Conditions, only_mean
from cluster.models.kept.kept_encoder import keep_encoder
from cluster.models.load_safely import LOAD_ERRORS, SAFELY, unloadable
from cluster.models.openvino_runtime import (
    PROBE_PASSAGES,
    PROBE_QUESTIONS,
    Runtime,
    choose_runtime,
    kept_of,
)
from cluster.settings.settings import EncoderSettings
from cluster.text.tokenise import Tokenise, Tokens

Vectors = NDArray[np.float32]
# The places of a batch's items, and what the model makes of them.
Output = tuple[list[int], dict[str, Tensor]]
PROBE = "The TP53 gene, \u03b1-synuclein and na\u00efve B cells"


class Encoder:
    """A sentence encoder loaded from `model_dir`.

    `max_tokens` cuts texts (the model's own limit by default); `batch_size` is in texts;
    `threads` sets torch's threads for the whole process. `runtime` runs the forward pass on a CPU:
    torch, openvino, or "auto", which times both at load and takes the faster one. Raises
    InputError for a folder that does not load, an unknown dtype or device, more tokens than the
    model has positions for, or a `runtime` that is not available.
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
        # The number type that vectors are computed in, such as "bfloat16".
        self.dtype = str(number_type).removeprefix("torch.")
        self._model = _load(model_dir, self.device, number_type)
        self._tokenizer = self._model.tokenizer
        self._edges = edge_tokens(self._tokenizer)
        # Truncation and padding are state of the tokeniser: two threads must not set them at once.
        self._tokenizing = Lock()
        if max_tokens is not None:
            self._limit(max_tokens)
        self.runtime = self._choose_runtime(runtime, number_type)
        if self.runtime == "openvino":
            self._keep(Conditions(model_dir, device, dtype, runtime, threads))

    @classmethod
    def by(cls, settings: EncoderSettings, model_dir: Path) -> Self:
        """The encoder in `model_dir`, run as `settings` say; raises as the constructor."""
        return cls(
            model_dir,
            device=settings.device,
            dtype=settings.dtype,
            max_tokens=settings.max_tokens,
            batch_size=settings.batch_size,
            threads=settings.threads,
            query_prefix=settings.query_prefix,
            runtime=settings.runtime,
        )

    @property
    def dimensions(self) -> int:
        """Length of each vector; 0 where the model does not tell it."""
        return int(self._model.get_embedding_dimension() or 0)

    @property
    def max_tokens(self) -> int:
        """Tokens that the model sees of a text, its special tokens included."""
        return int(self._model.max_seq_length or self._tokenizer.model_max_length)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (n, dimensions), float32, of length 1, in the order of `texts`."""
        return self._collect(len(texts), self._run(texts), None).vectors

    def compress_by(self, codec: TokenCodec, pool: int) -> Compress:
        """What codes tokens where this encoder runs; `pool` of a text, on average, as one."""
        return make_compress(codec, self.device, pool)

    def embed(self, texts: Sequence[str], compress: Compress | None) -> Embedded:
        """As `encode`, with the codes of the texts' own tokens, of the same pass over them.

        Special tokens and padding are left out. Without `compress` no text has any.
        """
        return self._collect(len(texts), self._run(texts), compress)

    def embed_tokens(self, tokens: Sequence[Tokens], compress: Compress | None) -> Embedded:
        """As `embed`, of the ids, special tokens too, that `cluster.text.tokenise` gives.

        A batch holds as many tokens, padding counted, as `batch_size` of the longest texts do.
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
        # Only now: a copy back waits for the GPU, which would then stand still between batches.
        vectors = np.zeros((rows, self.dimensions), dtype=np.float32)
        codes = [NO_CODES] * rows
        for places, unit, coded in found:
            vectors[places] = unit.cpu().numpy()
            if coded:
                counts = coded[1].cpu().numpy()
                parts = np.split(coded[0].cpu().numpy(), np.cumsum(counts)[:-1])
                for place, part in zip(places, parts, strict=True):
                    codes[place] = part
        return Embedded(vectors, codes)

    def _coded(self, output: dict[str, Tensor], compress: Compress) -> tuple[Tensor, Tensor]:
        """The codes of the texts' own tokens, one text's after the other's, and their counts."""
        inner = ~torch.isin(output["input_ids"], self._edges.to(output["input_ids"].device))
        own = normalize(output["token_embeddings"][inner].float(), dim=-1)
        return compress(own, inner.sum(1))

    def encode_queries(self, texts: Sequence[str]) -> list[QuestionVectors]:
        """The vectors of questions, each with the prefix that the model wants before a query.

        Of the tokens those of the prefix are left out, as special ones are.
        """
        skipped = len(self.token_offsets(self.query_prefix))
        found: dict[int, QuestionVectors] = {}
        for places, output in self._run([self.query_prefix + text for text in texts]):
            vectors = normalize(output["sentence_embedding"].float(), dim=-1).cpu().numpy()
            for place, vector, tokens in zip(places, vectors, self._own(output), strict=True):
                found[place] = QuestionVectors(vector, tokens[skipped:].astype(np.float16))
        return [found[place] for place in range(len(texts))]

    def token_vectors(self, texts: Sequence[str], batch_size: int | None = None) -> list[Vectors]:
        """For each text its tokens' last hidden states, (tokens, width) float32 of length 1.

        Special tokens and padding are left out, so an empty text gives (0, width).
        `batch_size` in texts is the encoder's own by default.
        """
        found: dict[int, Vectors] = {}
        for places, output in self._run(texts, batch_size):
            found.update(zip(places, self._own(output), strict=True))
        return [found[place] for place in range(len(texts))]

    def _own(self, output: dict[str, Tensor]) -> Iterator[Vectors]:
        """The vectors, of length 1, of each text's own tokens."""
        unit = normalize(output["token_embeddings"].float(), dim=-1).cpu().numpy()
        inner = ~torch.isin(output["input_ids"].cpu(), self._edges).numpy()
        for vectors, keep in zip(unit, inner, strict=True):
            yield vectors[keep]

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """(begin, end) of every token of the whole text, in code points, end exclusive."""
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
        """Raise InputError unless `tokenise` gives the tokens that the model sees of a text."""
        if tokenise([PROBE])[0].tolist() != self._tokenize([PROBE])["input_ids"][0].tolist():
            raise InputError(
                f"{self.name}'s tokeniser does not by itself give what the model sees: say in its "
                "tokenizer_config.json, not in sentence_bert_config.json, that case is lowered"
            )

    def _choose_runtime(self, runtime: Runtime, number_type: torch.dtype) -> str:
        """Replace the transformer's forward pass; pooling and what follows stay as they are."""
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

    def _keep(self, conditions: Conditions) -> None:
        modules = {type(module).__name__: module for module in self._model}
        facts = {"edges": self._edges.tolist(), "dimensions": self.dimensions}
        kept = kept_of(self._model[0].model, self._tokenizer, conditions, **facts)
        if kept is not None and only_mean(modules):
            keep_encoder(conditions, kept, PROBE_PASSAGES, self)

    def _probe(self, texts: Sequence[str]) -> Tensor:
        outputs = self._run(texts, len(texts))
        return torch.cat([output["sentence_embedding"] for _, output in outputs])

    def _limit(self, max_tokens: int) -> None:
        limit = int(self._tokenizer.model_max_length)
        if not 2 < max_tokens <= limit:
            raise InputError(
                f"max_tokens is {max_tokens}, and {self.name} takes from 3 to {limit}: "
                "set it within those bounds"
            )
        self._model.max_seq_length = max_tokens

    def _run(self, texts: Sequence[str], batch_size: int | None = None) -> Iterator[Output]:
        # Longest first: a batch that does not fit in memory fails at once, not after an hour.
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        batches = list(batched(order, batch_size or self.batch_size))
        return self._run_batches(batches, lambda batch: self._tokenize([texts[i] for i in batch]))

    def _run_batches(
        self, batches: Sequence[list[int]], prepare: Callable[[list[int]], dict[str, Any]]
    ) -> Iterator[Output]:
        """Each of `batches`, which are places, with the model's output for what it is made to."""
        if self._threads:
            # OpenMP keeps this by calling thread, and Ray and Serve call from their own, with
            # OMP_NUM_THREADS=1 in the environment: set at load time alone it is lost.
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
    # Loading takes under a second, and a bar a worker would fill the log of a job.
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
    """Ids that stand for no text: all special tokens but the unknown one, which stands for some."""
    return torch.tensor(sorted(set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}))
