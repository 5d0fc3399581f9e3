"""The option `--smallest` of every benchmark: run for a few seconds, to check that it works.

`--smallest` replaces all other arguments. The benchmark then runs on the sample corpus or on a few
generated citations, and its figures are meaningless. Arguments after `--smallest` are added to
those of the smallest run. `--smallest FOLDER` keeps the inputs in FOLDER, so that the next
benchmark can reuse them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from benchmarks.served_graph import ROOT
from pipelines.sample.write_sample import SampleCorpus, write_sample

HELP = "run in seconds on small inputs, kept in FOLDER if it is given; replaces other arguments"


class Inputs:
    """Inputs of the smallest runs; each is created in `folder` on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def _sample(self) -> SampleCorpus:
        return write_sample(self._folder / "sample")

    def sources(self) -> list[str]:
        """Return the three files of the sample corpus."""
        return list(map(str, self._sample.sources))

    def corpus(self) -> list[str]:
        """Return the folder that holds the three files."""
        return [str(self._sample.questions.parent)]

    def questions(self) -> list[str]:
        """Return the file of 40 questions about the sample corpus, in BioASQ's form."""
        return [str(self._sample.questions)]

    def index(self) -> list[str]:
        """Return an index of the sample corpus, built by `citeray index build`."""
        index = self._folder / "index"
        command = [sys.executable, "-m", "commands.cli", "index", "build", *self.sources()]
        command += ["--set", f"index.path={index}"]
        # The file is written last, so that an interrupted build is repeated.
        done = self._folder / "index.done"
        if not done.is_file():
            subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=True)
            done.touch()
        return [str(index)]

    def folder(self) -> list[str]:
        """Return an empty folder."""
        return [tempfile.mkdtemp(dir=self._folder)]


def parse_arguments(
    parser: ArgumentParser, smallest: str, arguments: Sequence[str] | None = None
) -> Namespace:
    """Parse the command line, or with `--smallest` the arguments in `smallest`.

    Words in capitals in `smallest` stand for inputs: INDEX is `Inputs.index`, and so on.
    """
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("--smallest", nargs="?", type=Path, metavar="FOLDER", help=HELP)
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "--smallest" not in words:
        return parser.parse_args(words)
    only = ArgumentParser(add_help=False, allow_abbrev=False)
    only.add_argument("--smallest", nargs="?", const="", default="")
    chosen, more = only.parse_known_args(words)
    inputs = Inputs(Path(chosen.smallest or _scratch()))
    filled = [
        part
        for word in smallest.split()
        for part in (getattr(inputs, word.lower())() if word.isupper() else [word])
    ]
    return parser.parse_args([*filled, *more])


# Deleted when the process ends.
_SCRATCH: list[tempfile.TemporaryDirectory[str]] = []


def _scratch() -> str:
    _SCRATCH.append(tempfile.TemporaryDirectory(prefix="citeray-bench-"))
    name: str = _SCRATCH[-1].name
    return name
