"""Rounds of downloads from a local server like NLM's to a folder or an object store.

Whatever fault occurs, a file under its final name is complete and equal to a version on the server.
The same download without a fault then gives exactly the server's files with their checksums and
leaves no other files.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from unittest.mock import Mock

from cluster.errors import CiteRayError
from pipelines.download.download_files import Outcome, download_files
from pipelines.download.fetch_file import Patience, Web
from pipelines.download.list_files import list_files
from tests.faults.clock import JUMP_S, Clock
from tests.faults.inject import ERRORS, OUT_OF_MEMORY, Injector, Killed
from tests.faults.memory_store import MemoryStore
from tests.faults.steps import DifferenceError, Draw, Step
from tests.pipelines.pubmed_server import PubMedServer, md5_line, pubmed_file, pubmed_server

SERVER_FAULTS = ("cut link", "busy server", "wrong bytes", "no ranges", "half a list")
DISK_FAULTS = (
    *ERRORS, OUT_OF_MEMORY, "kill", "power cut", "lying disk", "clock ahead", "clock back",
    "slow disk",
)  # fmt: skip
STORE_FAULTS = ("store down", "throttled", "store kill", "stale lists")
DOWNLOAD_FAULTS = (*SERVER_FAULTS, *DISK_FAULTS, *STORE_FAULTS)
OPERATIONS = ("download", "download", "release")
MOST_MOMENTS, MOST_REQUESTS, MOST_FILES = 26, 16, 4
PATIENCE = Patience(tries=2, first_wait_s=0.001, longest_wait_s=0.002, silence_s=5.0)
# Files of several blocks, so that a connection is cut within them.
SIZE = 2000


def draw_downloads(dice: random.Random, turn: int, *, in_store: bool) -> tuple[Step, ...]:
    """Draw the server's first files, then up to six downloads and releases of files."""
    faults = (*SERVER_FAULTS, *(STORE_FAULTS if in_store else DISK_FAULTS))
    drawn = Draw(dice, turn, faults, MOST_REQUESTS if in_store else MOST_MOMENTS)

    def step(operation: str) -> Step:
        if operation == "download":
            return drawn.step(operation, (), drawn.fault())
        # A file with a number that was used before replaces the earlier file.
        count = dice.randint(1, 2)
        released = ((dice.randint(1, MOST_FILES), dice.randint(1, 10**6)) for _ in range(count))
        return drawn.step(operation, tuple(released))

    rest = [step(dice.choice(OPERATIONS)) for _ in range(dice.randint(1, 6))]
    return (step("release"), *rest)


@cache
def _server() -> PubMedServer:
    """Return one server for all rounds of this process."""
    stack = ExitStack()
    server = stack.enter_context(pubmed_server())
    _open_servers.append(stack)
    # Do not log the connections that it cuts.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    return server


_open_servers: list[ExitStack] = []


def name_of(number: int) -> str:
    return f"{'baseline' if number == 1 else 'updatefiles'}/pubmed26n{number:04d}.xml.gz"


class DownloadRound:
    """Run steps against a server that has only the files that the round released."""

    def __init__(self, folder: Path, seed: int, *, in_store: bool) -> None:
        self._folder = folder / "pubmed"
        self._folder.mkdir()
        self._clock = Clock()
        self._store = MemoryStore(self._clock) if in_store else None
        self._dice = random.Random(seed)
        self._server = _server()
        self._server.files.clear()
        self._server.script.clear()
        self._released: dict[str, list[bytes]] = {}
        self._lost: dict[str, bytes] = {}
        self._release((1, 1))
        self.fired: list[str] = []

    def _release(self, file: tuple[int, int]) -> None:
        number, state = file
        data = pubmed_file(number * 10**7 + state, SIZE)
        self._server.add(name_of(number), data)
        self._released.setdefault(name_of(number), []).append(data)

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps; raises DifferenceError or an unexpected error of a download."""
        with ExitStack() as stack:
            stack.enter_context(self._clock.in_place())
            if self._store:
                stack.enter_context(self._store.in_place())
            for step in steps:
                if step.operation == "release":
                    for file in step.events:
                        self._release(file)
                elif step.fault:
                    self._attempt(step)
            failed = [outcome.error for outcome in self._download() if outcome.error]
            if failed:
                raise DifferenceError(f"without a fault: {failed}")
            self._check_whole()

    def _download(self) -> list[Outcome]:
        destination = "s3://bucket/pubmed" if self._store else str(self._folder)
        with Web(PATIENCE, lambda _: None) as web:
            files = list_files(web.read_text, self._server.url)
            return download_files(files, destination, web, Mock(), 1)

    def _attempt(self, step: Step) -> None:
        with suppress(Killed, CiteRayError, OSError, MemoryError):
            if step.fault in SERVER_FAULTS:
                self._with_bad_server(step)
            elif self._store:
                with self._store.failing(step.fault, step.at, self.fired):
                    self._download()
            else:
                injector = Injector(self._folder, step.fault, step.at, clock=self._clock)
                with injector.watching(self.fired, self._dice):
                    self._download()
        if step.fault == "clock back":
            self._clock.set_by(-JUMP_S)
        self._check_names(step)

    def _with_bad_server(self, step: Step) -> None:
        """Apply the fault to one file or to the list of files."""
        kept = self._kept()
        wanted = sorted(path for path in self._server.files if path.endswith(".xml.gz"))
        missing = [path for path in wanted if kept.get(path) != self._server.files[path]]
        path = self._dice.choice(missing or wanted)
        cut = f"drop:{step.at * 50 % len(self._server.files[path])}"
        replies = {
            "cut link": [cut] * (1 + step.at % 2),
            "busy server": ["busy:503:0"] * (1 + step.at % 2),
            "wrong bytes": ["wrong"] * (1 + step.at % 3),
            # The connection is cut, and the next reply ignores the range.
            "no ranges": [cut, "no-range"],
            "half a list": [],
        }[step.fault]
        self._server.script[path] = list(replies)
        hidden = {}
        if step.fault == "half a list":
            # The list does not have the newest files yet.
            hidden = {p: self._server.files.pop(p) for p in [path, f"{path}.md5"]}
        try:
            self._download()
        finally:
            if hidden or len(self._server.script[path]) < len(replies):
                self.fired.append(step.fault)
            self._server.files.update(hidden)
            self._server.script.clear()

    def _kept(self) -> dict[str, bytes]:
        """Return the downloaded files by path, without the lock file."""
        if self._store:
            below = "bucket/pubmed/"
            return {k.removeprefix(below): data for k, (data, _) in self._store.objects.items()}
        files = (p for p in self._folder.rglob("*") if p.is_file())
        kept = {str(p.relative_to(self._folder)): p.read_bytes() for p in files}
        kept.pop(".download.lock", None)
        return kept

    def _check_names(self, step: Step) -> None:
        """Check that each file is complete; a lying disk may truncate some until the next run."""
        kept = {path: data for path, data in self._kept().items() if path.endswith(".xml.gz")}
        torn = {path: data for path, data in kept.items() if data not in self._released[path]}
        if step.fault == "lying disk":
            self._lost = torn
        if wrong := [path for path, data in torn.items() if self._lost.get(path) != data]:
            raise DifferenceError(f"after {step}: {wrong} are no files that the server had")

    def _check_whole(self) -> None:
        kept, wanted = self._kept(), self._server.files
        if kept != wanted:
            lacks = [path for path in wanted if kept.get(path) != wanted[path]]
            more = sorted(kept.keys() - wanted.keys())
            raise DifferenceError(f"downloaded again it lacks {lacks} and has left {more}")
        for path in self._released:
            name = path.rpartition("/")[2]
            if kept[f"{path}.md5"] != md5_line(name, kept[path]):
                raise DifferenceError(f"{path}.md5 is not of {path}")
