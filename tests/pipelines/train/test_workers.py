"""Two workers in a process group of torch, without Ray."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed
import torch.multiprocessing

from pipelines.train.loop import Worker

pytestmark = [pytest.mark.durability, pytest.mark.model, pytest.mark.nightly]


def _average(rank: int, folder: str) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2
    )
    gradients = [torch.full((2,), float(rank)), torch.tensor([10.0 * rank])]
    worker = Worker.of_group()
    assert (worker.rank, worker.count) == (rank, 2)
    worker.average(gradients)
    torch.save(gradients, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_workers_step_by_the_mean_of_their_gradients(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(_average, (str(tmp_path),), nprocs=2)
    for rank in (0, 1):
        first, second = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert first.tolist() == [0.5, 0.5]
        assert second.tolist() == [5.0]
