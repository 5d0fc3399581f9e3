"""Pack what benchmarks.gpu_check needs into a folder that can be copied to a machine.

`pack.zip` holds the encoder with bfloat16 weights, texts, a codec of token vectors, and the vectors
and token codes that a CPU computes in float32 with the unrounded weights. Rows of the word
embeddings for tokens that no text contains are zero, which halves the file.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from cluster.index.tokens.codec import TokenCodec, learn_codec, read_codec
from cluster.models.adapters import model_folder
from cluster.models.embedded import Embedded
from cluster.models.encoder import Encoder
from cluster.settings.settings import Settings
from cluster.text.tokenise import make_tokeniser

# Packages that the encoder needs besides those of a common PyTorch installation.
PACKAGES = (
    "annotated-types",
    "pydantic",
    "pydantic_core",
    "sentence-transformers",
    "typing-inspection",
    "typing_extensions",
)
PLATFORMS = ("manylinux_2_17_x86_64", "manylinux2014_x86_64")
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Amounts:
    """Numbers of texts: `expected` passages are compared, and `learning` ones train the codec."""

    passages: int
    expected: int
    learning: int
    articles: int


@dataclass(frozen=True)
class Pack:
    """The contents of a pack; `expected` belongs to the first passages."""

    encoder: Path
    max_tokens: int
    codec: TokenCodec
    passages: list[str]
    articles: list[str]
    expected: Embedded


def read_texts(sources: Sequence[str], settings: Settings, amounts: Amounts) -> tuple[list, list]:
    """Return passages and whole articles of the sources, or of the sample corpus."""
    from cluster.pubmed.parse_articles import read_records
    from cluster.records import Citation
    from pipelines.indexing.sources.find_sources import find_sources
    from pipelines.indexing.staging.split_passages import make_splitter, split_citation
    from pipelines.sample.write_sample import write_sample

    with tempfile.TemporaryDirectory() as scratch:
        names = list(sources) or [str(p) for p in write_sample(Path(scratch)).sources]
        records = [r for file in find_sources(names) for r in read_records(file)]
    citations = [record for record in records if isinstance(record, Citation)]
    random.Random(0).shuffle(citations)
    splitter = make_splitter("characters", settings.split.size, settings.split.overlap)
    passages = [p.text for citation in citations for p in split_citation(citation, splitter)]
    articles = [f"{citation.title} {citation.abstract}" for citation in citations]
    return passages[: amounts.passages], articles[: amounts.articles]


def write_pack(folder: Path, settings: Settings, sources: Sequence[str], amounts: Amounts) -> Path:
    """Write pack.zip into `folder` and return its path."""
    coded = settings.index.token_codec
    assert coded is not None, "the settings must have index.token_vectors"
    model = model_folder(settings.encoder)
    passages, articles = read_texts(sources, settings, amounts)
    limit = settings.encoder.max_tokens
    encoder = Encoder(model, device="cpu", dtype="float32", max_tokens=limit)
    sample = np.concatenate(encoder.token_vectors(passages[-amounts.learning :]))
    codec = learn_codec(sample, coded.components, coded.bits)
    expected = encoder.embed(passages[: amounts.expected], encoder.compress_by(codec, 1))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        content = Path(scratch)
        shutil.copytree(model, content / "encoder")
        _shrink(content / "encoder" / WEIGHTS, make_tokeniser(model, limit)(passages))
        (content / "codec.safetensors").write_bytes(codec.to_bytes())
        texts = {"max_tokens": limit, "passages": passages, "articles": articles}
        (content / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        counts = list(map(len, expected.codes))
        codes = np.concatenate(expected.codes)
        np.savez(content / "expected.npz", vectors=expected.vectors, codes=codes, counts=counts)
        return Path(shutil.make_archive(str(folder / "pack"), "zip", content))


def _shrink(weights: Path, tokens: Sequence[np.ndarray]) -> None:
    """Round the weights to bfloat16 and zero the word embeddings of unused tokens."""
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(weights).items()}
    for name, tensor in tensors.items():
        if name.endswith("word_embeddings.weight"):
            unused = torch.ones(len(tensor), dtype=torch.bool)
            unused[torch.from_numpy(np.unique(np.concatenate(tokens)).astype(np.int64))] = False
            tensor[unused] = 0
    save_file(tensors, weights, metadata={"format": "pt"})


def read_pack(folder: Path, scratch: Path, amounts: Amounts) -> Pack:
    """Unpack pack.zip of `folder` into `scratch`; read at most `amounts` of texts."""
    with ZipFile(folder / "pack.zip") as archive:
        archive.extractall(scratch)
    texts = json.loads((scratch / "texts.json").read_text(encoding="utf-8"))
    stored = np.load(scratch / "expected.npz")
    codes = np.split(stored["codes"], np.cumsum(stored["counts"])[:-1])
    return Pack(
        encoder=scratch / "encoder",
        max_tokens=texts["max_tokens"],
        codec=read_codec(scratch / "codec.safetensors"),
        passages=texts["passages"][: amounts.passages],
        articles=texts["articles"][: amounts.articles],
        expected=Embedded(stored["vectors"][: amounts.expected], codes[: amounts.expected]),
    )


def download_wheels(folder: Path, python: str) -> None:
    """Download PACKAGES in the versions that are installed here, for `python` on Linux x86-64."""
    wanted = [f"{name}=={version(name)}" for name in PACKAGES]
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", python, "--implementation", "cp"]
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([*command, *platforms, "--dest", str(folder), *wanted], check=True)
