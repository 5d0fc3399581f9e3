"""Training steps of a toy task: a line with dropout, which shows whether steps are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing
from torch import Tensor, nn

from cluster.errors import CiteRayError, InputError
from cluster.settings.settings import load_settings
from pipelines.train.recipe import Recipe
from pipelines.train.run_job import run_job, take_steps
from pipelines.train.run_trainer import STATE, Measures
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.model, pytest.mark.nightly]

EXAMPLES = 20


class Line:
    """Learns y = 2x from a few points, through dropout; implements Task and Job."""

    device = "cpu"
    head = "bias"
    kind = "ner"
    data = held_out = ()

    def __init__(self, folder: Path, identity: str = "line", factor: float = 1.0, **changes: Any):
        torch.manual_seed(5)
        self.folder = folder
        self.recipe = recipe(**changes)
        self.base: Any = None
        self.identity = identity
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.sizes = list(range(EXAMPLES))
        self.seen: list[list[int]] = []
        self._points = torch.linspace(-1, 1, EXAMPLES)[:, None].repeat(1, 4)
        self._factor = factor

    def task(self) -> Line:
        return self

    def loss(self, places: Sequence[int]) -> Tensor:
        self.seen.append(list(places))
        x = self._points[list(places)]
        return ((self.model(x).float() - 2 * x[:, :1]) ** 2).mean() * self._factor

    def measure(self) -> Measures:
        return {"first weight": float(next(self.model.parameters())[0, 0])}

    def save(self, base: str, folder: Path) -> None: ...

    def weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.model.parameters()]


def recipe(**changes: object) -> Recipe:
    values = {
        "seed": 1, "steps": 12, "batch": 4, "learning_rate": 0.1, "head_learning_rate": 0.2,
        "warmup": 0.25, "weight_decay": 0.01, "clip": 1.0, "rank": 4, "alpha": 8, "mixing": 1,
        "dropout": 0.0, "targets": ".*", "max_tokens": 32, "checkpoint_every": 5,
        "measure_every": 0,
    }  # fmt: skip
    return Recipe.model_validate(values | changes)


def silent(line: str) -> None: ...


def train(line: Line, report: Any = silent) -> Line:
    take_steps(line, line, report)
    return line


def stop_at_step_10(line: str) -> None:
    if line.startswith("step 10 "):
        raise InterruptedError


def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = train(Line(tmp_path / "whole"))
    with pytest.raises(InterruptedError):
        train(Line(tmp_path / "cut"), stop_at_step_10)
    # A process that is killed while it writes a checkpoint leaves it without the state.
    (tmp_path / "cut" / STATE / "checkpoint-10").mkdir()
    resumed = train(Line(tmp_path / "cut"))
    assert len(resumed.seen) == 12 - 5
    assert whole.seen[5:] == resumed.seen
    for one, other in zip(whole.weights(), resumed.weights(), strict=True):
        assert torch.equal(one, other)


def test_measuring_during_training_does_not_change_the_weights(tmp_path: Path) -> None:
    lines: list[str] = []
    plain = train(Line(tmp_path / "plain"))
    measured = train(Line(tmp_path / "measured", measure_every=2), lines.append)
    assert torch.equal(plain.weights()[0], measured.weights()[0])
    assert [line.partition(":")[0] for line in lines if "first weight" in line] == [
        f"step {step} of 12" for step in (2, 4, 6, 8, 10)
    ]


def test_loss_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path: Path) -> None:
    with pytest.raises(CiteRayError, match=r"loss at step 1 is nan.*lower learning rate"):
        train(Line(tmp_path, factor=float("nan")))


@pytest.mark.parametrize("changes", [{"identity": "other data"}, {"learning_rate": 0.3}])
def test_checkpoint_of_another_run_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = make_tiny_encoder(tmp_path)
    base = load_settings().encoder.model_copy(update={"model": f"file:{folder}", "sha256": ""})
    for line in (Line(tmp_path / "out"), Line(tmp_path / "out", steps=12, checkpoint_every=7)):
        line.base = base
        run_job(line, "", silent)
    other = Line(tmp_path / "out", **changes)
    other.base = base
    with pytest.raises(InputError, match="train into another folder"):
        run_job(other, "", silent)


def test_damaged_checkpoint_is_refused_and_kept(tmp_path: Path) -> None:
    train(Line(tmp_path))
    path = tmp_path / STATE / "checkpoint-12" / "model.safetensors"
    cut = path.read_bytes()[:-40]
    path.write_bytes(cut)
    with pytest.raises(InputError, match="damaged checkpoint"):
        train(Line(tmp_path))
    assert path.read_bytes() == cut


def test_head_gets_its_own_learning_rate(tmp_path: Path) -> None:
    """AdamW's first step is as long as the learning rate, whatever the gradient."""
    line = Line(tmp_path, steps=1, warmup=0.0, head_learning_rate=0.5, weight_decay=0.0)
    before = line.model[2].bias.item()
    train(line)
    assert abs(line.model[2].bias.item() - before) == pytest.approx(0.5, rel=1e-3)


def _work(rank: int, folder: str) -> None:
    import os

    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "OMP_NUM_THREADS": "1",
    }
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2
    )
    line = train(Line(Path(folder), steps=3))
    torch.save((line.seen, line.weights()), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_processes_share_each_batch_and_have_the_same_weights(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(_work, (str(tmp_path),), nprocs=2)
    (first, weights), (second, others) = (
        torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1)
    )
    alone = train(Line(tmp_path / "alone", steps=3))
    pairs = zip(first, second, strict=True)
    assert [sorted(a + b) for a, b in pairs] == [sorted(batch) for batch in alone.seen]
    assert all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))
