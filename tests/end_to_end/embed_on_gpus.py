"""Build an index on a Ray that declares two GPUs, and record where each step ran.

python -m tests.end_to_end.embed_on_gpus NOTES SOURCE SETTING...
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray

from cluster.settings.settings import load_settings
from pipelines.indexing import index_tasks, jobs
from pipelines.indexing.shards.build_shard import build_graph, build_shard
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.indexing.staging import embed_sources, staging_tasks
from tests.end_to_end.command import short_folder

NOTES, SOURCE = Path(sys.argv[1]), sys.argv[2]


def note(step: str, table: pa.Table | None = None) -> None:
    context = ray.get_runtime_context()
    columns = table.column_names if table is not None else []
    said = {"step": step, "pid": os.getpid(), "columns": columns}
    said["gpu"] = context.get_assigned_resources().get("GPU", 0)
    said["devices"] = context.get_accelerator_ids()["GPU"]
    with NOTES.open("a") as stream:
        stream.write(json.dumps(said) + "\n")


class NotedTokenise(staging_tasks.TokenisePassages):
    def __call__(self, table: pa.Table) -> pa.Table:
        note("tokenise", table)
        return super().__call__(table)


class NotedEmbed(staging_tasks.EmbedAndStage):
    def __init__(self, *args: Any) -> None:
        note("load")
        super().__init__(*args)

    def __call__(self, batch: pa.Table) -> pa.Table:
        note("embed", batch)
        return super().__call__(batch)


def noted_graph(*args: Any) -> str:
    note("graph")
    return build_graph(*args)


def noted_shard(*args: Any) -> Any:
    note("shard")
    return build_shard(*args)


def main(overrides: Sequence[str]) -> None:
    settings = load_settings(overrides=overrides)
    index_tasks.build_graph = noted_graph
    index_tasks.build_shard = noted_shard
    embed_sources.TokenisePassages = NotedTokenise  # type: ignore[misc]
    embed_sources.EmbedAndStage = NotedEmbed  # type: ignore[misc]
    with short_folder() as folder:
        ray.init(
            address="local", num_cpus=3, num_gpus=2, object_store_memory=256 << 20,
            include_dashboard=False, log_to_driver=False, _temp_dir=str(folder),
        )  # fmt: skip
        try:
            jobs.build_index(find_sources([SOURCE]), settings, lambda _: None)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[3:])
