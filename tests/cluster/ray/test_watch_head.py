"""Loss of Ray's head is reported before Ray ends the process without a message."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from cluster.errors import HeadLostError
from cluster.ray import watch_head


@pytest.mark.slow
def test_lost_head_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_head, "LOOK_S", 0.1)
    monkeypatch.setattr(watch_head, "PATIENCE_S", 0.5)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    head = socket.create_server(("127.0.0.1", 0), backlog=100)
    address = f"127.0.0.1:{head.getsockname()[1]}"
    threading.Timer(1.5, head.close).start()
    begun = time.monotonic()
    with pytest.raises(HeadLostError, match=f"Ray's head at {address} has not answered") as lost:
        watch_head.await_head_loss(address)
    assert 1.5 < time.monotonic() - begun < 60
    assert lost.value.exit_code == 1


def test_patience_follows_the_reconnect_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert watch_head.patience_s() == 10
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.delenv(watch_head.RECONNECT_VARIABLE, raising=False)
    assert watch_head.patience_s() == 50
    monkeypatch.setenv(watch_head.RECONNECT_VARIABLE, "600")
    assert watch_head.patience_s() == 590
