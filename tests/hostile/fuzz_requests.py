"""Mutated requests by seed: none may cause a server error, a hang or growing memory.

    python -m tests.hostile.fuzz_requests --seed 0 --requests 100000

Sends valid requests with a few bytes changed, removed, doubled or replaced by those of another
request to the API in a separate process. Reports 5xx replies, complete requests without a reply in
2 s in each of three tries, and every thousand requests after which memory has grown by over 50 MiB.
The exit code is 1 if there is a report.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from tests.hostile.raw_http import QUESTION, ask, head, posted
from tests.serve.batches.served import Asking, served
from tests.serve.service import SmallService

BODIES = {
    b"/v1/search": QUESTION,
    b"/v1/answer": b'{"question": "Does metformin activate AMPK?", "k": 5, "type": "yesno", '
    b'"evidence": [{"pmid": 1, "section": "title", "begin": 0, "end": 9, "text": "Metformin"}]}',
    b"/v1/chat/completions": b'{"model": "citeray", "messages": [{"role": "user", "content": '
    b'[{"type": "text", "text": "Does metformin activate AMPK?"}]}], "n": 1, "stream": false}',
    b"/v1/batches": b'{"questions": [{"id": "q1", "type": "yesno", "body": "Is it?"}], "id": "b"}',
    b"/mcp": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": '
    b'"answer_question", "arguments": {"question": "Does metformin activate AMPK?", "k": 5}}}',
}
GETS = [b"/", b"/v1/models/citeray", b"/v1/citations/1", b"/v1/batches/b/run", b"/static/page.css"]
ACCEPT = b"Accept: application/json\r\n"
WHOLE = [
    *(posted(body, path, more=ACCEPT) for path, body in BODIES.items()),
    *(head(b"GET", path, ACCEPT) for path in GETS),
]
PIECES = [
    *(b"\r\n", b"\n", b"\0", b"\xff", b" ", b":", b"chunked", b"HTTP/1.1", b"/v1/answer", b"%00"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b"..", b"[", b"{", b"}", b'"'),
    *(b"\\ud800", b"\\u0000", b"9" * 30, b"1e999", b"-", b",", b"null", b"NaN", b"true", b"[[]]"),
]
MOST_SECONDS, TRIES = 2.0, 3
MOST_MIB = 50
# Seconds to wait for a reply to a request that may be incomplete.
HALF_PATIENCE_S = 0.1
SLICE = 1000
# Memory grows at first, while caches fill.
WARM_UP = 2 * SLICE


def mutated(draw: random.Random, whole: bytes, others: list[bytes]) -> bytes:
    """Return `whole` with one to five mutations, some of which insert parts of `others`."""
    text = bytearray(whole)
    for _ in range(draw.randint(1, 5)):
        at, size = draw.randrange(len(text) + 1), draw.randint(1, 30)
        match draw.randrange(5):
            case 0:
                text[at:at] = draw.choice(PIECES)
            case 1:
                del text[at : at + size]
            case 2:
                text[at : at + 1] = draw.randbytes(1)
            case 3:
                text[at:at] = text[at : at + size]
            case 4:
                other = draw.choice(others)
                text[at:] = other[draw.randrange(len(other)) :]
    return bytes(text)


def draw_request(seed: int) -> tuple[bytes, bool]:
    """Return a mutated request, and whether it is complete, so that a reply must come."""
    draw = random.Random(seed)
    if draw.random() < 0.7:
        path, body = draw.choice(list(BODIES.items()))
        return posted(mutated(draw, body, list(BODIES.values())), path, more=ACCEPT), True
    return mutated(draw, draw.choice(WHOLE), WHOLE), False


def fault_of(port: int, seed: int) -> tuple[int, str]:
    """Return the status of the reply to the request of `seed`, and its fault ("" if none)."""
    request, whole = draw_request(seed)
    # A busy machine is slow at times, but a hang is slow each time.
    for _ in range(TRIES):
        begun = time.monotonic()
        status, reply = ask(port, request, patience_s=10 if whole else HALF_PATIENCE_S)
        seconds = time.monotonic() - begun
        if status >= 500:
            return status, f"seed {seed}: {status} {reply[:200]!r} to {request!r}"
        if not whole or (seconds <= MOST_SECONDS and status):
            return status, ""
    return status, f"seed {seed}: {status} after {seconds:.1f} s, {TRIES} times, to {request!r}"


def run(port: int, process: psutil.Process, seeds: range) -> tuple[list[str], Counter[int]]:
    """Return the faults of the requests of `seeds`, and the number of replies by status."""
    faults, ended, before = list[str](), Counter[int](), 0.0
    with ThreadPoolExecutor(4) as pool:
        for first in range(0, len(seeds), SLICE):
            for status, fault in pool.map(partial(fault_of, port), seeds[first : first + SLICE]):
                ended[status] += 1
                if fault:
                    faults.append(fault)
            held = process.memory_info().rss / 2**20
            if first + SLICE <= WARM_UP or not before:
                before = held
            elif held - before > MOST_MIB:
                faults.append(f"up to seed {seeds[first]}: grown by {held - before:.0f} MiB")
                before = held
            alive, _ = ask(port, head(b"GET", b"/healthz"), MOST_SECONDS)
            if alive != 200:
                faults.append(f"up to seed {seeds[first]}: /healthz says {alive}")
    return faults, ended


def _serve(folder: Path, said: Connection) -> None:
    with served(service := SmallService(), folder, Asking(service)) as http:
        said.send(http.base_url.port)
        said.recv()


@contextmanager
def api_in_a_process() -> Iterator[tuple[int, psutil.Process]]:
    """Start the API of a small service; yield its port and process."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(Path(folder), theirs)
        )
        process.start()
        try:
            yield ours.recv(), psutil.Process(process.pid)
        finally:
            ours.send("end")
            process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="First seed; one request a seed.")
    parser.add_argument("--requests", type=int, default=100_000)
    given = parser.parse_args()
    begun = time.monotonic()
    with api_in_a_process() as (port, process):
        seeds = range(given.seed, given.seed + given.requests)
        faults, ended = run(port, process, seeds)
        held = process.memory_info().rss / 2**20
    seconds = time.monotonic() - begun
    print(f"{given.requests} requests in {seconds:.0f} s: {len(faults)} faults", *faults, sep="\n")
    print(f"statuses: {dict(sorted(ended.items()))}; {held:.0f} MiB in use at the end")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
