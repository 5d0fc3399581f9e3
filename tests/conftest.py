from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.markers import KINDS, can_match
from tests.unit_guard import UnitGuard

# No deadline, because a busy machine may pause; derandomised, so that a failure can be repeated.
settings.register_profile("citeray", deadline=None, derandomize=True)
settings.load_profile("citeray")


def pytest_configure(config: pytest.Config) -> None:
    only_units = config.option.markexpr == "unit"
    config.pluginmanager.register(UnitGuard(only_units=only_units), "unit-guard")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip importing files in which no test can match `-m`, because many import torch or Ray."""
    expression = config.option.markexpr
    if not expression or not collection_path.name.startswith("test_"):
        return None
    return None if can_match(collection_path, expression) else True


# pytest deselects by `-m` in its own hook, which must run after these markers are added.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not any(item.get_closest_marker(kind) for kind in KINDS):
            item.add_marker("unit")
    # Tests on Ray take longest and share one worker, so they start first.
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests of a file to one worker, and all tests that start Ray to one worker.

    Several Ray clusters at once need more memory than a small machine has, and time out there.
    """
    from xdist.scheduler import LoadScopeScheduling

    on_ray = config.stash.setdefault(ON_RAY, {})

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file not in on_ray:
                on_ray[file] = can_match(config.rootpath / file, "ray")
            return "ray" if on_ray[file] else file

    return ByFile(config, log)


ON_RAY = pytest.StashKey[dict[str, bool]]()
