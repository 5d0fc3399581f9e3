"""The loop over a toy task: a line with dropout, which shows whether steps are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cluster.errors import CiteRayError, InputError
from pipelines.train.loop import Measures, Report, Worker, batches, train
from pipelines.train.recipe import Recipe

pytestmark = [pytest.mark.durability, pytest.mark.model, pytest.mark.nightly]

EXAMPLES = 20


class Line:
    """Learns y = 2x from a few points, through dropout."""

    device = "cpu"
    head = "bias"

    def __init__(self, identity: str = "line", factor: float = 1.0, dropout: float = 0.5) -> None:
        torch.manual_seed(5)
        self.identity = identity
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.Linear(8, 1))
        self.sizes = list(range(EXAMPLES))
        self.seen: list[list[int]] = []
        self._points = torch.linspace(-1, 1, EXAMPLES)[:, None].repeat(1, 4)
        self._factor = factor

    def loss(self, places: Sequence[int]) -> Tensor:
        self.seen.append(list(places))
        x = self._points[list(places)]
        return ((self.model(x).float() - 2 * x[:, :1]) ** 2).mean() * self._factor

    def measure(self) -> Measures:
        return {"first weight": float(next(self.model.parameters())[0, 0])}

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


def silent(report: Report) -> None: ...


class StoppedError(Exception):
    pass


def stop(report: Report) -> None:
    raise StoppedError


def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(tmp_path: Path) -> None:
    whole = Line()
    train(whole, recipe(), tmp_path / "whole", silent)
    with pytest.raises(StoppedError):
        train(Line(), recipe(), tmp_path / "cut", stop)
    resumed = Line()
    train(resumed, recipe(), tmp_path / "cut", silent)
    assert len(resumed.seen) == 12 - 5
    for one, other in zip(whole.weights(), resumed.weights(), strict=True):
        assert torch.equal(one, other)


def test_measuring_on_the_way_changes_nothing(tmp_path: Path) -> None:
    plain, measured = Line(), Line()
    train(plain, recipe(), tmp_path / "plain", silent)
    train(measured, recipe(measure_every=1, checkpoint_every=1), tmp_path / "measured", silent)
    assert torch.equal(plain.weights()[0], measured.weights()[0])


def test_loss_that_is_no_number_ends_the_run_with_the_step_named(tmp_path: Path) -> None:
    with pytest.raises(CiteRayError, match=r"loss at step 1 is nan.*lower learning rate"):
        train(Line(factor=float("nan")), recipe(), tmp_path / "c", silent)


@pytest.mark.parametrize(
    ("task", "changes"), [(Line("other data"), {}), (Line(), {"learning_rate": 0.3})]
)
def test_checkpoint_of_another_run_is_refused(
    tmp_path: Path, task: Line, changes: dict[str, float]
) -> None:
    train(Line(), recipe(), tmp_path / "c", silent)
    with pytest.raises(InputError, match="train into another folder"):
        train(task, recipe(**changes), tmp_path / "c", silent)


def test_damaged_checkpoint_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(Line(), recipe(), path, silent)
    cut = path.read_bytes()[:-40]
    path.write_bytes(cut)
    with pytest.raises(InputError, match="not a checkpoint"):
        train(Line(), recipe(), path, silent)
    assert path.read_bytes() == cut


def test_batches_from_a_later_step_are_those_of_the_whole_run() -> None:
    sizes = list(range(50))
    whole = list(batches(sizes, recipe(steps=40), 0))
    assert len(whole) == 40
    assert list(batches(sizes, recipe(steps=40), 23)) == whole[23:]


def test_head_gets_its_own_learning_rate(tmp_path: Path) -> None:
    """AdamW's first step is as long as the learning rate, whatever the gradient."""
    task = Line()
    before = task.model[2].bias.item()
    one = recipe(steps=1, warmup=0.0, head_learning_rate=0.5, weight_decay=0.0)
    train(task, one, tmp_path / "c", silent)
    assert abs(task.model[2].bias.item() - before) == pytest.approx(0.5, rel=1e-3)


def test_workers_share_each_batch_and_only_the_first_writes(tmp_path: Path) -> None:
    first, second = Line(), Line()
    train(first, recipe(steps=3), tmp_path / "0", silent, Worker(0, 2))
    train(second, recipe(steps=3), tmp_path / "1", stop, Worker(1, 2))
    whole = list(batches(first.sizes, recipe(steps=3), 0))
    assert [sorted(a + b) for a, b in zip(first.seen, second.seen, strict=True)] == [
        sorted(batch) for batch in whole
    ]
    assert (tmp_path / "0").is_file()
    assert not (tmp_path / "1").exists()


def test_gradients_are_averaged_before_the_step(tmp_path: Path) -> None:
    """With all gradients made 0 and no decay nothing can move."""
    task = Line()
    before = task.weights()

    def nothing(gradients: list[Tensor]) -> None:
        for gradient in gradients:
            gradient.zero_()

    train(task, recipe(weight_decay=0.0), tmp_path / "c", silent, Worker(0, 1, nothing))
    assert all(torch.equal(a, b) for a, b in zip(before, task.weights(), strict=True))
