from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

# A busy machine's pause is no failure, and what failed once fails again.
settings.register_profile("citeray", deadline=None, derandomize=True)
settings.load_profile("citeray")

BESIDE_OTHERS = ("/test_embed_on_gpus.py", "/test_train_on_ray.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts Ray comes first: it takes longest, and one worker alone can do it."""
    items.sort(key=lambda item: "end_to_end" not in item.path.parts)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several workers, a file's tests share one, and so do all that start Ray.

    More clusters at once would want more memory, and time out on two cores. Those of several
    nodes wait for Ray rather than work, and make room for others; so do BESIDE_OTHERS, small ones
    in folders of their own.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if "/several_nodes/" in file or file.endswith(BESIDE_OTHERS):
                return "several_nodes"
            return "end_to_end" if "/end_to_end/" in file else file

    return ByFile(config, log)
