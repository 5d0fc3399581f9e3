"""Rounds of saved questions that are asked again for each version of an index.

Whatever fault occurs, a saved question has one check for each version with which it was asked. Its
checks report all changes from the first version to the last, and none is lost or repeated. A
webhook reports each notable check under one id.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

from cluster.errors import CiteRayError
from cluster.settings.saved_settings import SavedSettings
from cluster.settings.settings import load_settings
from serve.saved import database
from serve.saved.database import Database
from serve.saved.feedback import FeedbackStore
from serve.saved.recent_answers import RecentAnswers
from serve.saved.stored_answers import AnswerStore
from serve.saved.stores import Saved
from serve.saved.watches.deliveries import MOST_TRIES, MOST_WAIT_S, Delivery, DeliveryStore
from serve.saved.watches.keep_checking import WatchKeeper
from serve.saved.watches.watch_store import Check, WatchStore
from serve.saved.watches.webhooks import DeliveryError, deliver_due
from tests.faults.clock import JUMP_S, Clock
from tests.faults.database_faults import DATABASE_FAULTS, DatabaseFaults
from tests.faults.inject import Killed
from tests.faults.moving_graph import PMIDS, QUESTIONS, STANCES, Graph, nothing
from tests.faults.steps import DifferenceError, Draw, Step

ANY_FAULTS = (*DATABASE_FAULTS, "stop", "clock ahead", "clock back")
NO_ANSWERS, NO_MESSAGES = ("no answer", "a part of the index"), ("lost webhook", "lost receipt")
# After these faults, the keeper waits before it retries; the clock may be set back meanwhile.
WAITS = (*NO_ANSWERS, *NO_MESSAGES)
WATCH_FAULTS = (*ANY_FAULTS, *WAITS)
OPERATIONS = ("save", "publish", "publish", "watch", "watch", "watch", "deliver")
MOST_MOMENTS = 40
WEBHOOK = "https://example.org/hook"
DEADLINE_S = 10.0


def draw_watches(dice: random.Random, turn: int) -> tuple[Step, ...]:
    """Draw a version and a saved question, then up to twelve more steps."""
    drawn = Draw(dice, turn, WATCH_FAULTS, MOST_MOMENTS)

    def evidence() -> tuple[tuple[int, str], ...]:
        count = dice.randint(1, 3)
        return tuple((dice.choice(PMIDS), dice.choice(STANCES)) for _ in range(count))

    def step(operation: str) -> Step:
        if operation == "publish":
            return drawn.step(operation, evidence())
        if operation == "save":
            saved = (dice.randrange(QUESTIONS), dice.choice(("", WEBHOOK, WEBHOOK)))
            return drawn.step(operation, (saved,), drawn.fault(DATABASE_FAULTS))
        fault = drawn.fault((*ANY_FAULTS, *(NO_ANSWERS if operation == "watch" else NO_MESSAGES)))
        # Evidence that others publish while this process is stopped.
        others = evidence() if fault == "stop" and dice.random() < 0.7 else ()
        return drawn.step(operation, (), fault, others)

    first = (drawn.step("publish", evidence()), step("save"))
    rest = [step(dice.choice(OPERATIONS)) for _ in range(dice.randint(2, 12))]
    # Change the side of PMID 1, which all questions cite, so that there is a change to deliver.
    turned = (Step("publish", ((1, side),)) for side in ("for", "against"))
    last = [each for step_to in turned for each in (step_to, Step("watch"))]
    return (*first, *rest, *last, step("deliver"))


@cache
def default_saved() -> SavedSettings:
    """Return the default settings."""
    return load_settings().serve.saved


class WatchRound:
    """Run steps on a database in `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        url = f"sqlite:///{folder}/saved/citeray.db"
        values = {"url": url, "checks_per_minute": 10.0**6}
        self._settings = default_saved().model_copy(update=values)
        self._clock = Clock()
        self._graph = Graph()
        self._saved = self._open()
        self._watches: dict[str, tuple[int, str]] = {}
        self._arrived: dict[str, set[str]] = {}
        self.fired: list[str] = []

    def _open(self) -> Saved:
        kept = Database(self._settings.url)
        return Saved(
            settings=self._settings,
            models={},
            database=kept,
            answers=AnswerStore(kept, 10, 30),
            recent=RecentAnswers(),
            feedback=FeedbackStore(kept),
            watches=WatchStore(kept, 10),
            deliveries=DeliveryStore(kept),
        )

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps; raises DifferenceError or an unexpected error of the stores."""
        # Without waiting for the disk; a round has a thousand commits.
        fast = ("PRAGMA synchronous=OFF", "PRAGMA foreign_keys=ON")
        with self._clock.in_place(), patch.object(database, "PRAGMAS", fast):
            try:
                for step in (*steps, Step("watch")):
                    if step.fault:
                        self._attempt(step)
                        # By then, every wait is over, and so is the lease of a killed process.
                        self._clock.let_pass(MOST_WAIT_S + 1)
                    self._do(step)
                    self._check(step)
                    if step.operation == "watch":
                        self._check_asked(step)
                self._check_webhooks()
            finally:
                self._saved.database.close()

    def _attempt(self, step: Step) -> None:
        faults = DatabaseFaults(step.fault if step.fault in DATABASE_FAULTS else "", step.at)
        passed = itertools.count()

        def moment() -> str:
            """Count a moment, at an answer or before and after a message is sent."""
            faults.moment()
            if step.fault in DATABASE_FAULTS or next(passed) != step.at % 3:
                return ""
            self.fired.append(step.fault)
            if step.fault == "clock back":
                faults.dead = True
                raise Killed
            self._meanwhile(step)
            return step.fault

        self._graph.moment = moment
        with suppress(Killed, CiteRayError), faults.in_place():
            self._do(step)
        self._graph.moment = nothing
        if faults.fired:
            self.fired.append(step.fault)
        if step.fault == "clock back" or (step.fault in WAITS and step.at % 2):
            self._clock.set_by(-JUMP_S)
        if faults.dead:
            self._saved.database.close()
            self._saved = self._open()
        self._check(step)

    def _meanwhile(self, step: Step) -> None:
        if step.fault == "clock ahead":
            self._clock.set_by(JUMP_S)
        elif step.fault == "stop":
            # Its lease expires, and another process continues, possibly with a new version.
            self._clock.let_pass(MOST_WAIT_S + 1)
            if step.others:
                self._graph.publish(step.others)
            moment, self._graph.moment = self._graph.moment, nothing
            mine, self._saved = self._saved, self._open()
            try:
                # In another event loop, because this one is stopped.
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(self._do, Step("watch")).result()
                    pool.submit(self._do, Step("deliver")).result()
            finally:
                self._saved.database.close()
                self._saved, self._graph.moment = mine, moment

    def _do(self, step: Step) -> None:
        if step.operation == "publish":
            self._graph.publish(step.events)
        elif step.operation == "save":
            for number, webhook in step.events:
                # Two owners save each question independently.
                for owner in ("alice", "bob"):
                    asked = {"question": f"Q{number}?"}
                    watch = self._saved.watches.add(owner, asked, webhook)
                    self._watches[watch.id] = (number, webhook)
        elif step.operation == "watch":
            asyncio.run(self._watch())
        else:
            deliver_due(self._saved.deliveries, self._send)

    async def _watch(self) -> None:
        async def served() -> str:
            return self._graph.version

        await WatchKeeper(self._saved, self._graph, served, DEADLINE_S).check()

    def _send(self, delivery: Delivery) -> None:
        lost = self._graph.moment() == "lost webhook"
        if not lost:
            message = json.loads(delivery.body)
            self._arrived.setdefault(message["check"], set()).add(delivery.id)
        if lost or self._graph.moment() == "lost receipt":
            raise DeliveryError("example.org: no reply")

    def _checks(self, watch_id: str) -> list[Check]:
        return sorted(self._saved.watches.checks(watch_id), key=lambda check: check.version)

    def _check(self, step: Step) -> None:
        """Check that the reported changes are those between the versions that were asked."""
        for watch_id, (number, _) in self._watches.items():
            checks = self._checks(watch_id)
            versions = [check.version for check in checks]
            expected = self._graph.diffs_of(f"Q{number}?", versions)
            if [check.diff for check in checks] != expected:
                raise DifferenceError(f"after {step}: Q{number} of {versions} tells {checks}")
            notable = [diff is not None and diff.notable for diff in expected]
            if [check.notable for check in checks] != notable:
                raise DifferenceError(f"after {step}: Q{number} of {versions} notes {checks}")

    def _check_asked(self, step: Step) -> None:
        """Check that each question was asked of the served version after a run without faults."""
        for watch_id, (number, _) in self._watches.items():
            versions = [check.version for check in self._checks(watch_id)]
            if versions[-1:] != [self._graph.version]:
                raise DifferenceError(f"after {step}: Q{number} was asked of {versions}")

    def _check_webhooks(self) -> None:
        for _ in range(MOST_TRIES):
            self._do(Step("deliver"))
            self._clock.let_pass(MOST_WAIT_S + 1)
        expected = {
            check.id
            for watch_id, (_, webhook) in self._watches.items()
            for check in self._checks(watch_id)
            if check.notable and webhook
        }
        if self._arrived.keys() != expected:
            raise DifferenceError(f"webhooks received {self._arrived}, not {expected}")
        if twice := [ids for ids in self._arrived.values() if len(ids) > 1]:
            raise DifferenceError(f"webhooks received the same change under {twice}")
