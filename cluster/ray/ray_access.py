"""Who may reach a Ray: what is set before one starts here, and whether one asks for a token.

Whoever reaches a Ray that asks for none runs code as its user.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from cluster.errors import RayStartError

AUTH_MODE = "RAY_AUTH_MODE"
# Ray's own switch, off by default on macOS: without it a Ray listens on loopback alone.
BEYOND_THIS_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
_ANSWER_S = 5.0


def keep_to_this_machine() -> None:
    """Let a Ray that this process starts listen on loopback alone.

    To be called before Ray is imported, which reads it then. A cluster that RAY_ADDRESS names
    is none that is started here.
    """
    if not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault(BEYOND_THIS_MACHINE, "0")


def keep_token_private() -> None:
    """Have the token of a Ray started here in a file that only this user may read.

    Ray would write one that everybody on the machine may. Raises RayStartError where it cannot
    be kept so.
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
            f"{path}: Ray's token cannot be kept there for this user alone ({error.strerror}); "
            "make the folder writable, or give a token in RAY_AUTH_TOKEN"
        ) from error


def _write_token(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
        # Whole at once, and the first of two that start together wins.
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink()


def private_folder() -> str | None:
    """The folder of a Ray started here, within one that is this user's alone.

    Ray lets everybody on the machine write where its logs, sockets and working folders lie.
    None where RAY_TMPDIR names one. Raises RayStartError where another user's is in its place.
    """
    if "RAY_TMPDIR" in os.environ:
        return None
    folder = Path(tempfile.gettempdir()) / f"citeray-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) != 0o700:
        raise RayStartError(
            f"{folder}: others may write there, where Ray's logs and sockets should lie; remove "
            "it, or name a folder of your own with a short path in RAY_TMPDIR"
        )
    return str(folder / "ray")


def answers_without_token(address: str) -> bool:
    """Whether the Ray at `address` (host:port of its GCS) answers one who shows no token."""
    import grpc

    options = [("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(address, options=options) as channel:
        try:
            channel.unary_unary(_ALIVE)(b"", timeout=_ANSWER_S)
        except grpc.RpcError:
            # It asks for a token, or for a certificate before that.
            return False
    return True


def check_guarded(address: str) -> str:
    """What to warn of where an open Ray at `address` is meant, or "" where it is guarded.

    Raises RayStartError where it is open and RAY_AUTH_MODE does not say that it should be.
    """
    if not answers_without_token(address):
        return ""
    if os.environ.get(AUTH_MODE, "").lower() == "disabled":
        return (
            f"the Ray at {address} asks for no token: whoever reaches its ports runs code as its "
            "user; see that only you do, or start it with RAY_AUTH_MODE=token"
        )
    raise RayStartError(
        f"the Ray at {address} asks for no token, and whoever reaches its ports runs code as its "
        "user: start every node with RAY_AUTH_MODE=token and the same token (`ray get-auth-token "
        "--generate`), or say with RAY_AUTH_MODE=disabled that its network keeps others out"
    )
