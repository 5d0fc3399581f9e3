"""Notices that Ray's head is gone. Ray itself ends the process a minute later, without a word."""

from __future__ import annotations

import os
import socket
import time
from typing import NoReturn

from cluster.errors import HeadLostError

LOOK_S = 2.0
# Nothing starts the head of a Ray that was started here again.
PATIENCE_S = 10.0
# For so long Ray's processes wait for a head that is started again.
RECONNECT_VARIABLE = "RAY_gcs_rpc_server_reconnect_timeout_s"
RECONNECT_S = 60.0


def patience_s() -> float:
    """Seconds without a head after which it is given up, before Ray itself does so."""
    if not os.environ.get("RAY_ADDRESS"):
        return PATIENCE_S
    reconnect = float(os.environ.get(RECONNECT_VARIABLE) or RECONNECT_S)
    return max(reconnect - PATIENCE_S, PATIENCE_S)


def await_head_loss(address: str) -> NoReturn:
    """Block as long as Ray's head at `address`, HOST:PORT of its GCS, takes connections.

    Raises HeadLostError once it has taken none for `patience_s()` seconds.
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
                    "nothing can be served without it; see why it ended in its log gcs_server.out, "
                    "and run the same command again"
                ) from error
        time.sleep(LOOK_S)
