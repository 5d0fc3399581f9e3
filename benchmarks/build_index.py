"""Build an index, and encode the same passages with a plain SentenceTransformer loop."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from cluster.models.adapters import model_folder
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.settings import load_settings
from cluster.storage.object_store import File
from pipelines.indexing.staging.split_passages import make_splitter, split_citation


def passages_of(sources: Sequence[File]) -> list[str]:
    splitter = make_splitter("characters", 512, 64)
    records = (r for path in sources for r in read_records(path))
    citations = (r for r in records if isinstance(r, Citation))
    return [p.text for c in citations for p in split_citation(c, splitter)]


def bare_rate(texts: list[str], dtype: torch.dtype) -> float:
    """Return the passages per second of a plain `SentenceTransformer.encode` call."""
    settings = load_settings()
    path = model_folder(settings.encoder)
    model = SentenceTransformer(str(path), device="cpu", model_kwargs={"dtype": dtype})
    model.encode(texts[:32])
    begun = time.perf_counter()
    model.encode(texts, batch_size=32)
    return len(texts) / (time.perf_counter() - begun)


def build(sources: list[str], index: Path) -> float:
    """Build an index and return the seconds that its summary states."""
    command = [sys.executable, "-m", "commands.cli", "index", "build", *sources, "--json"]
    command += ["--set", f"index.path={index}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout)["seconds"])
