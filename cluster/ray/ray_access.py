"""Access control of Ray: settings of a local Ray, and whether a cluster requires a token.

Anyone who can reach a Ray cluster without a token can run code as its user.
"""

from __future__ import annotations

import os
import secrets
import signal
import stat
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from cluster.errors import RayStartError

AUTH_MODE = "RAY_AUTH_MODE"
# Ray's own switch, off by default on macOS: without it Ray listens only on loopback.
BEYOND_THIS_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
TERMINATED = 128 + signal.SIGTERM
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_ANSWER_S = 5.0


def keep_to_this_machine() -> None:
    """Make a Ray that this process starts listen only on loopback.

    Call this before Ray is imported, because Ray reads the setting at import. Does nothing if
    RAY_ADDRESS names a cluster, since no Ray is then started here.
    """
    if not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault(BEYOND_THIS_MACHINE, "0")


def exit_on_sigterm() -> None:
    """Exit with code 143 on SIGTERM, so that what was started stops as it does with Ctrl-C.

    Further SIGTERMs are ignored. Call it again after Ray has started, because Ray replaces the
    handler by one that exits with code 15.
    """

    def leave(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(TERMINATED)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, leave)


def keep_token_private() -> None:
    """Store the token of a Ray started here in a file that only this user can read.

    Ray itself would write a file that everyone on the machine can read. Raises RayStartError if
    the file cannot be written or protected.
    """
    if os.environ.get(AUTH_MODE, "token").lower() != "token" or "RAY_AUTH_TOKEN" in os.environ:
        return
    default = Path.home() / ".ray" / "auth_token"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or default)
    try:
        if path == default and not path.exists():
            _write_token(path)
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise RayStartError(
            f"{path}: cannot store Ray's token there for this user only ({error.strerror}); "
            "make the folder writable, or set a token in RAY_AUTH_TOKEN"
        ) from error


def _write_token(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
        # The link appears with the complete file, and the first of two concurrent starts wins.
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink()


def private_folder() -> str | None:
    """Return the folder of a Ray started here, inside a folder that only this user can access.

    By default, everyone on the machine can write to the folder of Ray's logs and sockets. Returns
    None if RAY_TMPDIR names a folder. Raises RayStartError if others can access the folder.
    """
    if "RAY_TMPDIR" in os.environ:
        return None
    folder = Path(tempfile.gettempdir()) / f"citeray-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) != 0o700:
        raise RayStartError(
            f"{folder}: others may write there, but Ray stores its logs and sockets in it; remove "
            "it, or set RAY_TMPDIR to a folder of your own with a short path"
        )
    return str(folder / "ray")


def answers_without_token(address: str) -> bool:
    """Return whether the Ray at `address` (host:port of its GCS) accepts a call without token."""
    import grpc

    options = [("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(address, options=options) as channel:
        try:
            channel.unary_unary(_ALIVE)(b"", timeout=_ANSWER_S)
        except grpc.RpcError:
            # It requires a token or a TLS certificate.
            return False
    return True


def check_guarded(address: str) -> str:
    """Return "" if Ray at `address` requires a token, or a warning if it deliberately does not.

    Raises RayStartError if it requires none and RAY_AUTH_MODE is not "disabled".
    """
    if not answers_without_token(address):
        return ""
    if os.environ.get(AUTH_MODE, "").lower() == "disabled":
        return (
            f"the Ray at {address} asks for no token: whoever reaches its ports runs code as its "
            "user; make sure that only you can, or start it with RAY_AUTH_MODE=token"
        )
    raise RayStartError(
        f"the Ray at {address} asks for no token, and whoever reaches its ports runs code as its "
        "user: start every node with RAY_AUTH_MODE=token and the same token (`ray get-auth-token "
        "--generate`), or set RAY_AUTH_MODE=disabled if its network is closed to others"
    )
