"""HTTP downloads with retries, back-off and resumption by byte range (RFC 9110, 14.2)."""

from __future__ import annotations

import email.utils
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import httpx

from cluster.errors import CiteRayError, without_credentials
from cluster.http_clients import UnsupportedProxyError, open_client
from cluster.storage.whole_files import write_atomically

T = TypeVar("T")
Note = Callable[[str], None]

MAX_MD5_BYTES = 4096
# PubMed's largest file has about 100 MiB.
MAX_FILE_BYTES = 2 * 1024**3
_HEX = r"(?P<hex>[0-9a-fA-F]{32})"
_MD5_FORMS = (
    re.compile(rf"MD5 ?\((?P<name>[^()]+)\) ?= ?{_HEX}", re.ASCII),
    re.compile(rf"{_HEX}(?:[ \t]+\*?(?P<name>\S+))?", re.ASCII),
)
_RANGE = re.compile(r"bytes (?P<first>\d+)-\d+/(?P<total>\d+)", re.ASCII)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(CiteRayError):
    """A file cannot be fetched from the server, even with retries."""


class StoppedError(CiteRayError):
    """The download was stopped."""


class _BusyError(Exception):
    """A transient failure that is retried, after `wait_s` seconds if the server names a delay."""

    def __init__(self, said: str, wait_s: float | None = None) -> None:
        super().__init__(said)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Patience:
    """Retry policy: `tries` per request, and the back-off and the read timeout in seconds."""

    tries: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 120.0
    silence_s: float = 60.0


def parse_md5(text: str, name: str) -> str:
    """Return the digest in `MD5(name)= hex` or `hex  name`; raises DownloadError for other text."""
    for form in _MD5_FORMS:
        match = form.fullmatch(text.strip())
        if match and match["name"] in (None, name):
            return match["hex"].lower()
    raise DownloadError(
        f"{name}.md5: its content is {text.strip()[:80]!r}, not MD5({name})= and 32 hex digits; "
        "report it to the server's operator"
    )


class Web:
    """Thread-safe HTTP client that retries transient errors."""

    def __init__(self, patience: Patience, note: Note) -> None:
        self._patience = patience
        self._note = note
        self._stop = threading.Event()
        self._http = open_client(
            # Forbid content coding, so that a .gz arrives as it is stored on the server.
            headers={"Accept-Encoding": "identity", "User-Agent": "citeray"},
            timeout=httpx.Timeout(patience.silence_s, connect=min(patience.silence_s, 20)),
            follow_redirects=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        self._http.close()

    def stop(self) -> None:
        """End every running request with StoppedError at its next block or wait."""
        self._stop.set()

    def read_text(self, url: str, limit: int) -> str:
        """Return the text at `url`.

        Raises DownloadError if it cannot be fetched or is longer than `limit` bytes.
        """

        def attempt() -> str:
            body = bytearray()
            with self._get(url) as response:
                for block in response.iter_raw():
                    body += block
                    if len(body) > limit:
                        raise DownloadError(
                            f"{url}: it is longer than {limit} bytes; check --base-url"
                        )
            return body.decode("utf-8", errors="replace")

        return self._patiently(url, attempt)

    def size_of(self, url: str) -> int | None:
        """Return the size in bytes that the server announces, or None if it announces none."""

        def attempt() -> int | None:
            response = self._http.head(url)
            _raise_busy(response)
            length = response.headers.get("Content-Length", "")
            return int(length) if response.is_success and length.isdecimal() else None

        return self._patiently(url, attempt)

    def fetch(self, url: str, partial: Path, report: Callable[[int, int | None], None]) -> None:
        """Fetch the file at `url` into `partial`, resuming an earlier download.

        The download resumes only if the server still has the same file (If-Range); otherwise it
        starts again. `report` gets the bytes so far and the total. Raises DownloadError, and
        OSError if the disk fails.
        """
        self._patiently(url, lambda: self._continue(url, partial, report))

    def _continue(self, url: str, partial: Path, report: Callable[[int, int | None], None]) -> None:
        held, headers = _resumption(partial)
        with self._get(url, headers) as response:
            if response.status_code == 416 and _whole_size(response) == held:
                return
            begun, total = _extent(response)
            if response.status_code == 416 or begun not in (0, held):
                discard(partial)
                raise _BusyError("the file changed on the server during the download")
            if begun == 0:
                discard(partial)
                _keep_validator(response, partial)
            done = self._append(response, partial, begun, total, report)
        if total is not None and done != total:
            raise _BusyError(f"the server sent {done} of {total} bytes")

    def _append(
        self, response: httpx.Response, partial: Path, done: int, total: int | None,
        report: Callable[[int, int | None], None],
    ) -> int:  # fmt: skip
        report(done, total)
        with partial.open("ab") as sink:
            for block in response.iter_raw():
                done += len(block)
                if done > (limit := MAX_FILE_BYTES if total is None else total):
                    raise DownloadError(
                        f"{response.url}: it is longer than {limit} bytes; "
                        "report it to the server's operator"
                    )
                sink.write(block)
                report(done, total)
                if self._stop.is_set():
                    raise StoppedError(f"{response.url}: stopped after {done} bytes")
        return done

    @contextmanager
    def _get(self, url: str, headers: dict[str, str] | None = None) -> Iterator[httpx.Response]:
        with self._http.stream("GET", url, headers=headers) as response:
            _raise_busy(response)
            if not (response.is_success or response.status_code == 416):
                raise DownloadError(
                    f"{url}: the server answered {response.status_code} {response.reason_phrase}; "
                    "check --base-url"
                )
            yield response

    def _patiently(self, url: str, attempt: Callable[[], T]) -> T:
        for number in range(1, self._patience.tries + 1):
            if self._stop.is_set():
                raise StoppedError(f"{url}: stopped before the request was sent")
            try:
                return attempt()
            except (httpx.TransportError, _BusyError) as error:
                said = str(error) or type(error).__name__
                if number == self._patience.tries:
                    raise DownloadError(
                        f"{url}: given up after {number} tries ({said}); "
                        "run the same command again later to continue"
                    ) from error
                wait = self._wait_s(number, error)
                note = f"{url}: {said}; trying again in {wait:.0f} s"
                self._note(without_credentials(note))
                self._stop.wait(wait)
            except UnsupportedProxyError as error:
                raise DownloadError(f"{url}: {error}") from error
            except httpx.InvalidURL as error:
                # The message of InvalidURL may quote part of a password.
                raise DownloadError(f"{url}: not a valid URL; check --base-url") from error
            except httpx.HTTPError as error:
                raise DownloadError(f"{url}: {error}; check --base-url") from error
        raise DownloadError(f"{url}: not requested, because `tries` is 0")

    def _wait_s(self, number: int, error: Exception) -> float:
        asked = error.wait_s if isinstance(error, _BusyError) else None
        if asked is None:
            # Jitter, so that downloads interrupted by one fault do not all retry at once.
            asked = self._patience.first_wait_s * 2 ** (number - 1) * random.uniform(0.5, 1.5)
        return min(asked, self._patience.longest_wait_s)


def discard(partial: Path) -> None:
    """Remove a partial download and its validator."""
    partial.unlink(missing_ok=True)
    _validator_file(partial).unlink(missing_ok=True)


def _validator_file(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.etag")


def _resumption(partial: Path) -> tuple[int, dict[str, str]]:
    """Return the number of bytes fetched before, and the headers that request the rest."""
    validator = _validator_file(partial)
    size = partial.stat().st_size if partial.is_file() and validator.is_file() else 0
    if size == 0:
        return 0, {}
    return size, {
        "Range": f"bytes={size}-",
        "If-Range": validator.read_text("ascii", errors="ignore"),
    }


def _keep_validator(response: httpx.Response, partial: Path) -> None:
    """Store the validator for If-Range: a strong ETag or else the Last-Modified date."""
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")
    if validator.isascii() and validator.isprintable() and validator:
        write_atomically(_validator_file(partial), validator.encode("ascii"), alone=True)


def _extent(response: httpx.Response) -> tuple[int, int | None]:
    """Return the offset of the first byte in the response, and the size of the whole file."""
    if response.status_code == 206:
        said = response.headers.get("Content-Range", "")
        match = _RANGE.fullmatch(said)
        if match is None:
            raise _BusyError(f"the server sent the invalid Content-Range {said!r}")
        return int(match["first"]), int(match["total"])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None


def _whole_size(response: httpx.Response) -> int | None:
    """Return the file size from a 416 response, if it has one (RFC 9110, 14.4)."""
    match = re.fullmatch(r"bytes \*/(\d+)", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _raise_busy(response: httpx.Response) -> None:
    if response.status_code in _PASSING:
        after = response.headers.get("Retry-After", "")
        raise _BusyError(f"the server answered {response.status_code}", _seconds(after))


def _seconds(retry_after: str) -> float | None:
    """Return Retry-After in seconds, from a number or a date (RFC 9110, 10.2.3)."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None
