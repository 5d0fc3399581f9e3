"""Write a vocabulary file from a list of concepts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from cluster.text.vocabulary import CONCEPT, Concept, normalise, write_concepts


def write_each(concepts: Iterable[Concept], path: Path) -> None:
    rows = [asdict(concept) for concept in concepts]
    keys = [normalise(name) for row in rows for name in row["names"]]
    write_concepts(pa.array(rows, CONCEPT), pa.array(keys, pa.large_string()), path)
