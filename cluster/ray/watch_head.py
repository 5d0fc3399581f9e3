"""Detects the loss of Ray's head. Ray itself ends the process a minute later without a message."""

from __future__ import annotations

import os
import socket
import time
from typing import NoReturn

from cluster.errors import HeadLostError

LOOK_S = 2.0
# Seconds without a connection after which a head that was started here counts as lost.
PATIENCE_S = 10.0
# Ray's variable for the time that its processes wait for a head to restart, and its default.
RECONNECT_VARIABLE = "RAY_gcs_rpc_server_reconnect_timeout_s"
RECONNECT_S = 60.0


def patience_s() -> float:
    """Return the seconds after which a missing head counts as lost, before Ray gives up."""
    if not os.environ.get("RAY_ADDRESS"):
        return PATIENCE_S
    reconnect = float(os.environ.get(RECONNECT_VARIABLE) or RECONNECT_S)
    return max(reconnect - PATIENCE_S, PATIENCE_S)


def await_head_loss(address: str) -> NoReturn:
    """Block as long as Ray's head at `address`, HOST:PORT of its GCS, accepts connections.

    Raises HeadLostError once it has accepted none for `patience_s()` seconds.
    """
    host, _, port = address.rpartition(":")
    patience, heard = patience_s(), time.monotonic()
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=LOOK_S).close()
            heard = time.monotonic()
        except OSError as error:
            if time.monotonic() - heard > patience:
                raise HeadLostError(
                    f"Ray's head at {address} has not answered for {patience:.0f} s ({error}), and "
                    "nothing can be served without it; look for the cause in its log "
                    "gcs_server.out, and run the same command again"
                ) from error
        time.sleep(LOOK_S)
