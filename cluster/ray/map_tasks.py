"""Map a function over items by Ray tasks on all nodes of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ray

Item = TypeVar("Item")
Result = TypeVar("Result")

# Tasks that wait for each CPU of the cluster, so that no CPU is idle while a slow task ends.
TASKS_PER_CPU = 2


# Tasks are spread over the nodes, because each task copies files to the disk of its node.
@ray.remote(num_cpus=1, max_retries=3, scheduling_strategy="SPREAD")
def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def map_tasks(
    function: Callable[[Item], Result], items: Sequence[Item], at_once: int | None = None
) -> Iterator[Result]:
    """Yield the results in order, each computed by a Ray task with one CPU.

    The driver starts at most `at_once` tasks before it takes the first result (default: twice the
    CPUs of the cluster), so that the results that wait for it are bounded.
    """
    limit = at_once or max(TASKS_PER_CPU * int(ray.cluster_resources().get("CPU", 1)), 1)
    # Stored once instead of with each task, because it may hold a manifest.
    stored = ray.put(function)
    waiting: deque[Any] = deque()
    for item in items:
        if len(waiting) >= limit:
            yield ray.get(waiting.popleft())
        waiting.append(_call.remote(stored, item))
    while waiting:
        yield ray.get(waiting.popleft())
