"""Download missing files, several at once; a file is stored only if complete and verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial as bind
from typing import Literal, Protocol, TypeVar

from cluster.errors import StorageError
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.whole_files import md5_of
from pipelines.download.fetch_file import MAX_MD5_BYTES, DownloadError, Web, discard, parse_md5
from pipelines.download.keep_files import Keeper, open_keeper
from pipelines.download.list_files import RemoteFile

T = TypeVar("T")
R = TypeVar("R")

# A second download repairs a damaged transfer, but not a file that is damaged on the server.
MD5_TRIES = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of downloading one file; if `error` is set, the file was not stored."""

    name: str
    folder: str
    state: Literal["fetched", "present", "failed"]
    bytes: int = 0
    error: str = ""


class Observer(Protocol):
    """Receives the progress of a download, from several threads; sizes are in bytes."""

    def checked(self, done: int, total: int) -> None:
        """Report that `done` of `total` files were compared with the destination."""

    def planned(self, files: int, total: int) -> None:
        """Report the number of missing files and their total size in bytes, as far as known."""

    def moved(self, name: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` bytes of a file were fetched."""

    def finished(self, outcome: Outcome) -> None:
        """Report that a file was fetched or failed."""

    def note(self, text: str) -> None:
        """Report a message, such as a failed attempt."""


@dataclass(frozen=True, slots=True)
class _Missing:
    file: RemoteFile
    md5: str
    size: int | None


def download_files(
    files: Sequence[RemoteFile], destination: str, web: Web, observer: Observer, concurrent: int
) -> list[Outcome]:
    """Download the `files` that are missing in `destination`, a folder or a URL.

    Return the outcomes in the order of `files`. A file that cannot be fetched has the outcome
    "failed" and does not stop the others. Raises CiteRayError before anything is fetched if the
    disk is too small, or if another download writes there.
    """
    with open_keeper(destination) as keeper:
        download = _Download(keeper, web, observer)
        plan = _in_parallel(download.compare, files, concurrent, web, observer.checked)
        missing = [p for p in plan if isinstance(p, _Missing)]
        keeper.require_room([_bytes_left(keeper, m) for m in missing], concurrent)
        observer.planned(len(missing), sum(m.size or 0 for m in missing))
        fetched = iter(_in_parallel(download.fetch_missing, missing, concurrent, web))
        return [next(fetched) if isinstance(p, _Missing) else p for p in plan]


def _bytes_left(keeper: Keeper, missing: _Missing) -> int:
    partial = keeper.partial(missing.file)
    held = partial.stat().st_size if partial.is_file() else 0
    return max((missing.size or 0) - held, 0)


def _in_parallel(
    work: Callable[[T], R],
    items: Sequence[T],
    concurrent: int,
    web: Web,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> list[R]:
    """Return the results in the order of `items`; an error or Ctrl-C stops all running work."""
    pool = ThreadPoolExecutor(concurrent, thread_name_prefix="download")
    try:
        futures = [pool.submit(work, item) for item in items]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            report(done, len(items))
        return [future.result() for future in futures]
    except BaseException:
        web.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Download:
    def __init__(self, keeper: Keeper, web: Web, observer: Observer) -> None:
        self._keeper = keeper
        self._web = web
        self._observer = observer

    def _read_md5(self, file: RemoteFile) -> str:
        return parse_md5(self._web.read_text(f"{file.url}.md5", MAX_MD5_BYTES), file.name)

    def compare(self, file: RemoteFile) -> Outcome | _Missing:
        """Check whether the destination holds the same file as the server."""
        try:
            md5 = self._read_md5(file)
            if self._keeper.holds(file, md5):
                return Outcome(file.name, file.folder, "present")
            return _Missing(file, md5, self._web.size_of(file.url))
        except (DownloadError, OSError) as error:
            return self._failed(file, error)

    def fetch_missing(self, missing: _Missing) -> Outcome:
        """Fetch one file, verify it and store it."""
        file = missing.file
        try:
            with explain_disk_faults(self._keeper.partial(file)):
                size = self._fetch(file, missing.md5)
        except (DownloadError, OSError) as error:
            return self._failed(file, error)
        outcome = Outcome(file.name, file.folder, "fetched", size)
        self._observer.finished(outcome)
        return outcome

    def _fetch(self, file: RemoteFile, expected: str) -> int:
        partial = self._keeper.partial(file)
        found = ""
        for number in range(MD5_TRIES):
            if number:
                expected = self._read_md5(file)
            self._web.fetch(file.url, partial, bind(self._observer.moved, file.name))
            size = partial.stat().st_size
            found = md5_of(partial)
            if found == expected:
                self._keeper.keep(file, expected)
                return size
            discard(partial)
            self._observer.note(f"{file.name}: its md5 is {found}, not {expected}; trying again")
        raise DownloadError(
            f"{file.name}: its md5 is {found} and {file.url}.md5 says {expected}, after "
            f"{MD5_TRIES} downloads; the file was discarded, report it to the server's operator"
        )

    def _failed(self, file: RemoteFile, error: Exception) -> Outcome:
        said = str(error)
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            said = f"{file.name}: it cannot be kept ({error}); free disk space and run again"
        outcome = Outcome(file.name, file.folder, "failed", error=said)
        self._observer.finished(outcome)
        return outcome
