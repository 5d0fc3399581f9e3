from types import SimpleNamespace
from typing import Any

import pytest

from cluster.settings.settings import load_settings
from serve.graph.following_stage import FollowingStage


class Version:
    def __init__(self, number: int) -> None:
        self._number = number

    def find(self, text: str) -> str:
        return f"{text} in version {self._number}"


def stage() -> tuple[FollowingStage, SimpleNamespace]:
    """Return a stage and its follower, whose version a test can set."""
    current = SimpleNamespace(value=Version(1))
    follower: Any = SimpleNamespace(current=current, follow=lambda *_: None)
    lease: Any = None
    return FollowingStage(lambda *_: follower, load_settings(), lease), follower


def test_cached_method_calls_the_current_version() -> None:
    served, follower = stage()
    find = served.find
    assert (find.__name__, find("AMPK")) == ("find", "AMPK in version 1")
    follower.current = SimpleNamespace(value=Version(2))
    assert find("AMPK") == "AMPK in version 2"


@pytest.mark.parametrize("method", ["check_health", "_number", "__fspath__"])
def test_unknown_and_private_methods_are_missing(method: str) -> None:
    served, _ = stage()
    assert getattr(served, method, None) is None


def test_stage_without_a_version_raises_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = FollowingStage.__new__(FollowingStage).find
