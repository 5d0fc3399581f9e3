"""Callers that ask a graph continuously, and the faults of their replies."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from tests.end_to_end.small_graph import ANSWER_S
from tests.end_to_end.waiting import meanwhile

CALLERS = 3
PAUSE_S = 0.1
# Longer than any valid reply, to distinguish a hang from a late reply.
HANG_S = 300.0
# Fields that may differ between equal answers.
TIMES = ("timings_ms", "spent")


@dataclass(frozen=True)
class Asked:
    """A repeated request; without a question it is a GET."""

    path: str
    question: str = ""
    system: str = ""

    def __str__(self) -> str:
        return f"{self.path} {self.question} {self.system}".rstrip()

    def send(self, http: httpx.Client) -> httpx.Response:
        if not self.question:
            return http.get(self.path)
        return http.post(self.path, json={"question": self.question, "system": self.system})


CHANGE = "Does protein binding change in patients?"
ASKED = (
    Asked("/v1/search", "protein", "hybrid"),
    Asked("/v1/answer", CHANGE, "citeray"),
    Asked("/v1/answer", CHANGE, "citeray-model"),
    Asked("/v1/search", "gene expression in therapy", "bm25"),
    Asked("/v1/answer", "Which cells respond to therapy?", "citeray"),
    Asked("/v1/citations/16"),
)


@dataclass(frozen=True)
class Reply:
    """Reply to a request that was sent at `begun`; `lost` is the error if there was none."""

    asked: Asked
    begun: float
    seconds: float
    status: int = 0
    again_after: str | None = None
    body: Any = None
    lost: str = ""

    @property
    def losses(self) -> list[str]:
        """Return the losses that a search or an answer reports."""
        found: list[str] = self.body.get("degraded", []) if isinstance(self.body, dict) else []
        return found

    @property
    def summary(self) -> str:
        """Return the result in one or two words."""
        if self.lost:
            return "lost connection"
        if self.status == 200:
            return "degraded" if self.losses else "whole"
        return f"{self.status}" + (" with Retry-After" if self.again_after else "")


def reply_to(asked: Asked, http: httpx.Client) -> Reply:
    begun = time.monotonic()
    try:
        reply = asked.send(http)
        text = reply.json() if "json" in reply.headers.get("Content-Type", "") else reply.text
    except httpx.HTTPError as error:
        return Reply(asked, begun, time.monotonic() - begun, lost=repr(error))
    again_after = reply.headers.get("Retry-After")
    return Reply(asked, begun, time.monotonic() - begun, reply.status_code, again_after, text)


@dataclass
class Callers:
    """Threads that ask continuously, one for each request of ASKED."""

    url: str
    replies: list[Reply] = field(default_factory=list)

    def _call(self, first: int, over: threading.Event) -> None:
        with httpx.Client(base_url=self.url, timeout=HANG_S) as http:
            turn = first
            while not over.wait(PAUSE_S):
                self.replies.append(reply_to(ASKED[turn % len(ASKED)], http))
                turn += 1

    def asking(self) -> AbstractContextManager[None]:
        """Ask until the block ends."""
        return meanwhile(*(partial(self._call, 2 * number) for number in range(CALLERS)))

    def counted(self) -> Counter[str]:
        return Counter(reply.summary for reply in self.replies)


@dataclass(frozen=True)
class Allowed:
    """Errors that a round allows from `begun` until recovery at `ended`.

    `held_up_s` is how long the gateway or proxy was stopped, in which time no reply is possible.
    `may_lose` says whether connections may be lost, as when a proxy is killed.
    """

    begun: float
    ended: float
    held_up_s: float = 0.0
    may_lose: bool = False

    def faults(self, reply: Reply, wanted: Any) -> Iterator[str]:
        """Yield the faults of `reply`, whose undisturbed body is `wanted`."""
        meanwhile = reply.begun < self.ended and reply.begun + reply.seconds > self.begun
        description = f"{reply.asked}, asked at {reply.begun - self.begun:.1f} s: {reply.summary}"
        if reply.seconds > ANSWER_S + (self.held_up_s if meanwhile else 0.0):
            yield f"{description} after {reply.seconds:.0f} s"
        if reply.lost:
            if not (self.may_lose and meanwhile):
                yield f"{description}: {reply.lost}"
        elif reply.status == 200:
            losses = wanted.get("degraded", [])
            if reply.losses == losses and (found := difference(reply.body, wanted)):
                yield f"{description}, and says nothing of what differs: {found}"
        elif reply.status not in (429, 503) or not reply.again_after:
            yield f"{description}: {str(reply.body)[:300]}"


def difference(found: Any, wanted: Any, where: str = "reply") -> str:
    """Return the first difference of two bodies, or ""."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        if found.keys() != wanted.keys():
            return f"{where} has {sorted(found.keys() ^ wanted.keys())} in one alone"
        pairs = [(found[k], wanted[k], f"{where}.{k}") for k in wanted if k not in TIMES]
    elif isinstance(wanted, list) and isinstance(found, list):
        if len(found) != len(wanted):
            return f"{where} has {len(found)} parts, not {len(wanted)}"
        places = range(len(wanted))
        pairs = [(found[n], wanted[n], f"{where}[{n}]") for n in places]
    elif isinstance(wanted, float) and isinstance(found, float | int):
        # The last bits of a vector depend on the other texts of its batch.
        near = math.isclose(found, wanted, abs_tol=5e-3)
        return "" if near else f"{where} is {found}, not {wanted}"
    else:
        return "" if found == wanted else f"{where} is {str(found)[:80]}, not {str(wanted)[:80]}"
    return next((summary for pair in pairs if (summary := difference(*pair))), "")


def faults_of(
    replies: Sequence[Reply], allowed: Allowed, references: Mapping[Asked, Any]
) -> list[str]:
    """Return the first faults of the replies."""
    found = [fault for reply in replies for fault in allowed.faults(reply, references[reply.asked])]
    return [*found[:5], f"and {len(found) - 5} more"] if len(found) > 5 else found
