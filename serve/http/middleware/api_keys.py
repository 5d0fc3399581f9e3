"""API keys from the environment, and a rate limit for each."""

from __future__ import annotations

import os
import re
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from cluster.errors import InputError

MIN_KEY_CHARACTERS = 16
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Key:
    """API key: the name of its owner and the SHA-256 digest of the key."""

    name: str
    digest: bytes


def read_keys(variable: str) -> tuple[Key, ...]:
    """Return the keys in the environment variable: `name:key` pairs, comma- or space-separated.

    Return () if it is unset or empty. Raise InputError for a malformed entry; the message never
    contains a key.
    """
    keys: dict[str, Key] = {}
    for number, pair in enumerate(os.environ.get(variable, "").replace(",", " ").split(), 1):
        name, colon, key = pair.partition(":")
        if not colon or not NAME.fullmatch(name):
            raise InputError(
                f"{variable}: entry {number} is not name:key, with a name of up to 64 letters, "
                "digits, dots, dashes and underscores"
            )
        if len(key) < MIN_KEY_CHARACTERS:
            raise InputError(
                f"{variable}: the key of {name} has under {MIN_KEY_CHARACTERS} characters; "
                "make one with `openssl rand -hex 32`"
            )
        if name in keys:
            raise InputError(f"{variable}: {name} has two keys; give each key its own name")
        keys[name] = Key(name, sha256(key.encode()).digest())
    return tuple(keys.values())


def open_door(host: str, variable: str) -> str:
    """Return a warning if other machines can use `host` without an API key, or ""."""
    if read_keys(variable) or host == "localhost" or host.startswith("127.") or host == "::1":
        return ""
    return (
        f"anyone who can reach this machine at {host} may ask without a key; set keys in "
        f"{variable}, or set serve.host=127.0.0.1"
    )


def owner(given: str, keys: Sequence[Key]) -> str | None:
    """Return the name of the owner of the key, or None. Compares in constant time."""
    digest = sha256(given.encode(errors="surrogateescape")).digest()
    found = None
    for key in keys:
        if compare_digest(key.digest, digest):
            found = key.name
    return found


def given_key(headers: Mapping[str, str]) -> str:
    """Return the key in `Authorization: Bearer KEY` or `X-API-Key: KEY`, or "".

    Basic authentication is accepted too, for feed readers: the key is the password, and the user
    name is ignored.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if key := headers.get("x-api-key", "").strip():
        return key
    return _password(token.strip()) if scheme.lower() == "basic" else ""


def _password(token: str) -> str:
    try:
        return b64decode(token, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


class Rates:
    """Rate limit: a token bucket of `per_minute` requests for each key name; 0 means no limit.

    Each gateway replica counts separately.
    """

    def __init__(self, per_minute: int) -> None:
        self._full = float(per_minute)
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, name: str, now: float | None = None) -> float:
        """Take a token and return 0, or return the seconds until the next one is available."""
        if not self._full:
            return 0.0
        now = time.monotonic() if now is None else now
        left, at = self._buckets.get(name, (self._full, now))
        left = min(self._full, left + (now - at) * self._full / 60)
        taken = left >= 1
        self._buckets[name] = (left - taken, now)
        return 0.0 if taken else (1 - left) * 60 / self._full
