"""Queues of one stage, first come, first served, with replicas that are away for a while.

Questions only go forward, from stage to stage, so each stage is simulated over all of its
arrivals in the order of time: every replica is an event "free again at", and the next
question takes the earliest. Without batches, losses and a deadline this is the queue GI/G/c
by the recursion of Kiefer and Wolfowitz (1955).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from planning.measure.coefficients import Point

Seconds = npt.NDArray[np.float64]
# Draws the seconds of (how many at once, as an array), such as of each question or batch.
Draw = Callable[[Seconds], Seconds]


@dataclass(frozen=True, slots=True)
class Loss:
    """Replicas that are away from second `begin` on until `end`; what they did is lost.

    `replicas` has their numbers, or of a stage in parts a (part, replica) row each.
    """

    begin: float
    end: float
    replicas: npt.NDArray[np.intp]


NO_LOSS = Loss(math.inf, math.inf, np.empty((0,), np.intp))


def lognormal(points: Sequence[Point], generator: np.random.Generator) -> Draw:
    """Seconds through the medians and 95th percentiles of `points`; in between on a line.

    `points` are of one request and of a full batch, or of one of them alone.
    """
    at = [p.concurrent for p in points]
    medians = [p.median_seconds for p in points]
    spreads = [math.log(max(p.p95_seconds / p.median_seconds, 1.0)) for p in points]
    z = NormalDist().inv_cdf(0.95)

    def draw(together: Seconds) -> Seconds:
        sigma = np.interp(together, at, spreads) / z
        drawn = generator.standard_normal(together.shape)
        return np.asarray(np.interp(together, at, medians) * np.exp(sigma * drawn), np.float64)

    return draw


@dataclass(frozen=True, slots=True)
class Served:
    """When each question left a stage, and whether the stage did its part in time.

    `begun` is the second at which its work began; `busy` is the work of all replicas.
    """

    left: Seconds
    done: npt.NDArray[np.bool_]
    begun: Seconds
    busy: float


def serve_batches(
    arrivals: Seconds,
    replicas: int,
    batch: int,
    draw: Draw,
    deadline_s: float,
    loss: Loss = NO_LOSS,
) -> Served:
    """`arrivals`, ascending, through `replicas` that take up to `batch` waiting ones at once.

    A question that waits longer than `deadline_s` is given up at that moment and takes no
    replica; one whose work ends later is late, and its replica has done the work.
    """
    count = len(arrivals)
    left, begun = arrivals + deadline_s, np.full(count, np.inf)
    done = np.zeros(count, np.bool_)
    singles = draw(np.ones(count))
    free = [(0.0, number) for number in range(replicas)]
    lost = set(loss.replicas.tolist())
    heapq.heapify(free)
    busy, at = 0.0, 0
    while at < count:
        when, number = heapq.heappop(free)
        start = max(when, float(arrivals[at]))
        if number in lost and loss.begin <= start < loss.end:
            heapq.heappush(free, (loss.end, number))
            continue
        if start > arrivals[at] + deadline_s:
            heapq.heappush(free, (when, number))
            at += 1
            continue
        ahead = min(at + batch, count)
        after = at + max(int(np.searchsorted(arrivals[at:ahead], start, "right")), 1)
        spent = singles[at] if after == at + 1 else draw(np.full(1, float(after - at)))[0]
        end = start + float(spent)
        broken = number in lost and start < loss.begin < end
        busy += min(end, loss.begin) - start if broken else end - start
        begun[at:after] = start
        if broken:
            left[at:after] = np.minimum(left[at:after], loss.begin)
        else:
            in_time = end <= arrivals[at:after] + deadline_s
            done[at:after] = in_time
            left[at:after] = np.where(in_time, end, left[at:after])
        heapq.heappush(free, (loss.end if broken else end, number))
        at = after
    return Served(left, done, begun, busy)


def serve_parts(
    arrivals: Seconds, shape: tuple[int, int], draw: Draw, deadline_s: float, loss: Loss = NO_LOSS
) -> Served:
    """`arrivals`, ascending, through all parts of a stage of the shape (parts, replicas).

    A question leaves with the last of its parts, or at its deadline without those that are
    late or lost: `done` holds where all parts were there.
    """
    parts, _ = shape
    free = np.zeros(shape)
    every = np.arange(parts)
    lost = np.zeros(shape, np.bool_)
    if len(loss.replicas):
        lost[tuple(loss.replicas.T)] = True
    left, begun = np.empty(len(arrivals)), np.empty(len(arrivals))
    done = np.empty(len(arrivals), np.bool_)
    busy = 0.0
    for at, now in enumerate(arrivals.tolist()):
        spent = draw(np.ones(parts))
        if loss.begin <= now < loss.end:
            free[lost] = np.maximum(free[lost], loss.end)
        chosen = free.argmin(axis=1)
        start = np.maximum(free[every, chosen], now)
        taken = start <= now + deadline_s
        end = start + spent
        cut = lost[every, chosen] & (start < loss.begin) & (end > loss.begin) & taken
        free[every, chosen] = np.where(taken, np.where(cut, loss.end, end), free[every, chosen])
        in_time = taken & ~cut & (end <= now + deadline_s)
        last = np.where(in_time, end, np.where(cut, loss.begin, now + deadline_s))
        left[at], begun[at], done[at] = last.max(), start.max(), in_time.all()
        busy += float(np.where(taken, spent, 0.0).sum())
    return Served(left, done, begun, busy)


def quantile(values: Seconds, weights: Seconds, q: float) -> float:
    """The value below which the share `q` of the weight lies; 0 of none."""
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    reached: Any = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, q * reached[-1])])
