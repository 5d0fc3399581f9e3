"""Builds, updates and compactions that tests interrupt, and the result of undisturbed ones."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cluster.index.manifest import Manifest, read_manifest
from pipelines.verify.verify_index import verify_index
from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.end_to_end.command import WHOLE_INDEX, small_settings, start, with_settings
from tests.end_to_end.watched_index import (
    LOOK_EVERY_S,
    Contents,
    contents,
    files_open_in,
    watching,
)
from tests.tiny_models import WORDS

SHARDS = 2
DEADLINE_S = 500
LOG = "command.log"


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
    """Corpus of three baseline files and three update files that revise and delete records."""

    folder: Path

    @property
    def baseline(self) -> Path:
        return self.folder / "baseline"

    @property
    def sources(self) -> list[Path]:
        return sorted(self.folder.glob("*/*.xml"))


def write_corpus(folder: Path, seed: int = 0, per_file: int = 600) -> Corpus:
    """Write `per_file` citations to each baseline file, and a third as many to each update file."""
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
    """Result of an undisturbed job: `paths` is the number of files and folders that it wrote."""

    after: Contents
    counts: tuple[int, int, int, int]
    paths: int


def counts_of(manifest: Manifest) -> tuple[int, int, int, int]:
    return (manifest.citations, manifest.passages, manifest.superseded, manifest.deleted)


@dataclass(frozen=True)
class Jobs:
    """Run index jobs on a Ray cluster, and keep the result of each undisturbed job.

    `driver` is the environment that a driver needs to reach the cluster, `inside` wraps a command
    so that it runs in a pod, and `program` is the module to run. With `one_reference`, every job is
    compared with an undisturbed update, because build, update and compaction of the same sources
    have the same live contents. Copies by `dataclasses.replace` share the references.
    """

    folder: Path
    encoder: Path
    corpus: Corpus
    driver: Mapping[str, str] = field(default_factory=dict)
    inside: Callable[[list[str]], list[str]] = list
    program: str = "commands.cli"
    one_reference: bool = False
    # Every file that the driver of an undisturbed job opened.
    opened: set[str] = field(default_factory=set)
    references: dict[str, Reference] = field(default_factory=dict)

    def command(self, job: str, index: Path) -> list[str]:
        words = [sys.executable, "-m", self.program, "index", job]
        if job != "compact":
            words.append(str(self.corpus.folder))
        settings = small_settings(index, self.encoder, SHARDS)
        # One actor per node.
        return with_settings(words, [*settings, "encoder.actors=2"])

    def start(self, command: list[str], log_name: str = LOG) -> subprocess.Popen:
        with (self.folder / log_name).open("wb") as log:
            return start(self.inside(command), self.driver, stdout=log, stderr=log)

    def said(self, log_name: str = LOG) -> str:
        return (self.folder / log_name).read_text(errors="replace")

    def finish(self, command: list[str]) -> None:
        """Run `command` to its end and note the files that its driver opens."""
        begun, driver = time.monotonic(), self.start(command)
        while driver.poll() is None:
            looked = time.monotonic()
            assert looked - begun < DEADLINE_S, self.said()
            self.opened.update(files_open_in(driver.pid))
            # A look takes milliseconds of a processor, which the job needs.
            time.sleep(max(LOOK_EVERY_S, 4 * (time.monotonic() - looked)))
        assert driver.returncode == 0, self.said()

    def reference(self, job: str) -> Reference:
        job = "update" if self.one_reference else job
        if job not in self.references:
            index = Path(shutil.copytree(self.before(job), self.folder / f"reference-{job}"))
            with watching(index) as watch:
                self.finish(self.command(job, index))
            assert not watch.problems, watch.problems
            manifest = read_manifest(index)
            after = contents(index, manifest)
            self.references[job] = Reference(after, counts_of(manifest), len(watch.paths))
        return self.references[job]

    def before(self, job: str) -> Path:
        """Return the index that `job` starts from: the baseline, or for `compact` its update."""
        if job == "compact":
            self.reference("update")
            return self.folder / "reference-update"
        index = self.folder / "baseline"
        if not index.exists():
            words = self.command("build", index)
            words[words.index(str(self.corpus.folder))] = str(self.corpus.baseline)
            self.finish(words)
        return index

    def ends_well(self, driver: subprocess.Popen, failures: list[str], log_name: str = LOG) -> bool:
        """Return True if the command succeeds. A hang or an undocumented exit is a failure."""
        try:
            code = driver.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            driver.kill()
            failures.append("it hung")
            return False
        said = self.said(log_name)
        if code and (code != 1 or "citeray: " not in said or "Traceback" in said):
            failures.append(f"exit code {code}: {said[-2000:]}")
        return code == 0

    def faults(self, index: Path, reference: Reference) -> list[str]:
        """Return the differences from `reference`, the findings of verify, and leftover files."""
        manifest = read_manifest(index)
        faults = []
        if counts_of(manifest) != reference.counts:
            faults.append(f"counts {counts_of(manifest)}, not {reference.counts}")
        if different := contents(index, manifest).differs(reference.after):
            faults.append(different)
        faults += [str(f) for f in verify_index(index, self.corpus.sources).findings]
        names = {p.name for p in index.iterdir()} - set(WHOLE_INDEX)
        faults += [f"{name} is left" for name in sorted(names)]
        return faults
