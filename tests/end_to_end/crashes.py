"""Commands that are killed with -9 at a seeded moment, run again, and what must then hold."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cluster.index.layout import CURRENT
from cluster.index.manifest import Manifest, read_manifest
from pipelines.verify.verify_index import verify_index
from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.end_to_end.command import ROOT, environment, small_settings, with_settings
from tests.end_to_end.two_nodes import TwoNodes, kill
from tests.end_to_end.watched_index import LOOK_EVERY_S, Contents, Watch, contents
from tests.tiny_models import WORDS

JOBS = ("build", "update", "compact")
VICTIMS = ("driver", "worker", "node")
SHARDS = 2
DEADLINE_S = 500


def _record(pmid: int, chance: random.Random) -> str:
    words = " ".join(chance.choices(WORDS.split()[:-7], k=30))
    abstract = f"<Abstract><AbstractText>{words}.</AbstractText></Abstract>"
    return article(f"<PMID>{pmid}</PMID>", f"<ArticleTitle>Trial {pmid}</ArticleTitle>{abstract}")


def _write(path: Path, pmids: Sequence[int], gone: Sequence[int], chance: random.Random) -> None:
    records = [_record(pmid, chance) for pmid in pmids]
    if gone:
        listed = "".join(f"<PMID>{pmid}</PMID>" for pmid in gone)
        records.append(f"<DeleteCitation>{listed}</DeleteCitation>")
    text = f"{DOCTYPE}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Corpus:
    """Three baseline files, and three update files that revise and delete."""

    folder: Path

    @property
    def baseline(self) -> Path:
        return self.folder / "baseline"

    @property
    def sources(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.xml"))


def write_corpus(folder: Path, seed: int = 0, per_file: int = 600) -> Corpus:
    """`per_file` citations a baseline file, a third of that an update file."""
    chance = random.Random(seed)
    last = 3 * per_file
    for number in range(3):
        pmids = range(number * per_file + 1, (number + 1) * per_file + 1)
        _write(folder / f"baseline/pubmed26n{number + 1:04d}.xml", pmids, (), chance)
    for number in range(3):
        fresh = [*range(last + 1, last + per_file // 6)]
        changed = chance.sample(range(1, last), per_file // 6 + 10)
        last = fresh[-1]
        path = folder / f"updatefiles/pubmed26n{number + 4:04d}.xml"
        _write(path, [*changed[10:], *fresh], changed[:10], chance)
    return Corpus(folder)


@dataclass(frozen=True)
class Reference:
    """A job done without interruption: from a copy of `before`, in so many paths of files."""

    before: Path
    after: Contents
    counts: tuple[int, int, int, int]
    paths: int
    seconds: float


def counts_of(manifest: Manifest) -> tuple[int, int, int, int]:
    return (manifest.citations, manifest.passages, manifest.superseded, manifest.deleted)


@dataclass(frozen=True)
class Round:
    """One job, killed once and run again until it was done."""

    number: int
    job: str
    victim: str
    survived: bool
    reruns: int
    staged_twice: int
    opened: int
    leftovers: int
    failures: tuple[str, ...]


@dataclass
class Bench:
    """Runs jobs on `nodes`, from references that are made once each."""

    folder: Path
    encoder: Path
    nodes: TwoNodes
    corpus: Corpus
    encoders: int = 2
    _references: dict[str, Reference] = field(default_factory=dict)

    def command(self, job: str, index: Path) -> list[str]:
        words = [sys.executable, "-m", "cluster.cli", "index", job]
        if job != "compact":
            words.append(str(self.corpus.folder))
        settings = small_settings(index, self.encoder, SHARDS)
        return with_settings(words, [*settings, f"encoder.actors={self.encoders}"])

    def start(self, command: Sequence[str]) -> subprocess.Popen:
        log = (self.folder / "command.log").open("wb")
        found = environment(self.nodes.driver)
        return subprocess.Popen(command, cwd=ROOT, env=found, stdout=log, stderr=log)

    def said(self) -> str:
        return (self.folder / "command.log").read_text(errors="replace")

    def finish(self, command: Sequence[str]) -> None:
        assert self.start(command).wait(DEADLINE_S) == 0, self.said()

    def reference(self, job: str) -> Reference:
        if job not in self._references:
            before = self._before(job)
            index = Path(shutil.copytree(before, self.folder / f"reference-{job}"))
            begun = time.monotonic()
            with Watch(index) as watch:
                self.finish(self.command(job, index))
            seconds = time.monotonic() - begun
            assert not watch.problems, watch.problems
            manifest = read_manifest(index)
            held = contents(index, manifest)
            paths = len(watch.paths)
            self._references[job] = Reference(before, held, counts_of(manifest), paths, seconds)
        return self._references[job]

    def _before(self, job: str) -> Path:
        """An index to begin with: of the baseline alone, and for compaction with updates."""
        if job == "compact":
            self.reference("update")
            return self.folder / "reference-update"
        index = self.folder / "baseline"
        if not index.exists():
            words = self.command("build", index)
            words[words.index(str(self.corpus.folder))] = str(self.corpus.baseline)
            self.finish(words)
        return index

    def round(self, number: int, job: str, victim: str, chance: random.Random) -> Round:
        """Kill `victim` during `job` at a moment that `chance` gives, and end what it began."""
        reference = self.reference(job)
        self.nodes.require_second()
        index = Path(shutil.copytree(reference.before, self.folder / f"round-{number}"))
        command = self.command(job, index)
        moment, delay = chance.randrange(reference.paths), chance.random() * 0.2
        failures: list[str] = []
        reruns = 0
        with Watch(index) as watch:
            driver = self.start(command)
            self._await_moment(driver, watch, moment, delay)
            survived = self._strike(victim, driver, chance, failures)
            while not survived and reruns < 3:
                self.nodes.require_second()
                reruns += 1
                survived = self._ends_well(self.start(command), failures)
        failures += watch.problems[:3]
        failures += self._faults(index, reference)
        left = len(verify_index(index).leftovers)
        if not failures:
            shutil.rmtree(index)
        return Round(
            number,
            job,
            victim,
            survived=not reruns,
            reruns=reruns,
            staged_twice=watch.staged_twice,
            opened=watch.opened,
            leftovers=left,
            failures=tuple(failures),
        )

    def _await_moment(
        self, driver: subprocess.Popen, watch: Watch, moment: int, delay: float
    ) -> None:
        begun = time.monotonic()
        while len(watch.paths) < moment and driver.poll() is None:
            assert time.monotonic() - begun < DEADLINE_S, self.said()
            time.sleep(LOOK_EVERY_S)
        time.sleep(delay)

    def _strike(
        self,
        victim: str,
        driver: subprocess.Popen,
        chance: random.Random,
        failures: list[str],
    ) -> bool:
        """Kill it; whether the run ended well all the same."""
        if victim == "driver":
            driver.kill()
            return driver.wait() == 0
        if victim == "node":
            self.nodes.lose_second()
        else:
            while not (found := self.nodes.workers()) and driver.poll() is None:
                time.sleep(LOOK_EVERY_S)
            kill(chance.sample(sorted(found), 1) if found else [])
        return self._ends_well(driver, failures)

    def _ends_well(self, driver: subprocess.Popen, failures: list[str]) -> bool:
        try:
            code = driver.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            driver.kill()
            failures.append("it hung")
            return False
        said = self.said()
        if code and (code != 1 or "citeray: " not in said or "Traceback" in said):
            failures.append(f"exit code {code}: {said[-2000:]}")
        return code == 0

    def _faults(self, index: Path, reference: Reference) -> list[str]:
        """What is not as in the reference, what verify finds, and staging that is left."""
        manifest = read_manifest(index)
        faults = []
        if counts_of(manifest) != reference.counts:
            faults.append(f"counts {counts_of(manifest)}, not {reference.counts}")
        if different := contents(index, manifest).differs(reference.after):
            faults.append(different)
        faults += [str(f) for f in verify_index(index, self.corpus.sources).findings]
        names = {p.name for p in index.iterdir()} - {CURRENT, "segments", "versions"}
        faults += [f"{name} is left" for name in sorted(names)]
        return faults


@lru_cache(maxsize=1)
def plan_of(seed: int, rounds: int) -> tuple[tuple[str, str], ...]:
    """Job and victim of each round: every pair as often as any other, in a seeded order."""
    pairs = [(job, victim) for victim in VICTIMS for job in JOBS]
    chance = random.Random(seed)
    chosen: list[tuple[str, str]] = []
    while len(chosen) < rounds:
        chosen += chance.sample(pairs, len(pairs))
    return tuple(chosen[:rounds])
