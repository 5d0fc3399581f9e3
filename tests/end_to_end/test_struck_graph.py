"""A few faults in a serving graph; `python -m tests.faults --on-ray` plays any number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.play_rounds import serving_rounds
from tests.faults.on_ray.serving_rounds import ServingRounds

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

SERVING = (
    *(Strike(victim, "kill", 1.0, 0.0) for victim in ("gateway", "proxy", "controller")),
    *(Strike(victim, "stop", 1.0, 4.0) for victim in ("encoder", "shard", "gateway")),
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[ServingRounds]:
    with serving_rounds(tmp_path_factory.mktemp("struck"), encoder) as rounds:
        yield rounds


@pytest.mark.parametrize("strike", SERVING, ids=str)
def test_replies_are_complete_or_report_what_was_lost(
    serving: ServingRounds, strike: Strike
) -> None:
    served = serving.play(RayRound(0, "serving", (strike,)))
    assert served.failures == []
    assert served.counted["whole"] > 0
