"""Compare the estimates of `citeray plan` with real builds, by corpus size.

    python -m benchmarks.bench_plan FOLDER [--sizes 20000 60000 1000000] [--shards 4]

Uses generated citations and the stand-in encoder of `bench_scale`, and shares its sources in
FOLDER. The plan comes from a calibration with the same encoder on `--calibrate` citations and on a
real build of an eighth of them; the calibration is kept in FOLDER. Prints seconds, bytes and
memory, each estimated and measured.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bench_scale import sources_of
from benchmarks.smallest import parse_arguments
from benchmarks.stand_in import DIMENSIONS, BagOfWords, build_by_stand_in, stand_in_settings
from cluster.settings.settings import Settings
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    process_memory,
)
from planning.figures import Figure
from planning.measure import calibrate
from planning.measure.coefficients import Coefficients, read_coefficients, write_coefficients
from planning.measure.fit import Line
from planning.measure.watch_build import BuildMeasured

SMALLEST = "FOLDER --sizes 300 --shards 2 --calibrate 800"

CALIBRATE = 32_000
NO_REPLICA = Line(base=0.0, slope=0.0)


def effort(citations: int) -> calibrate.Effort:
    """Return the effort of a calibration on at most `citations`."""
    # With 60,000 passages for 32,000 citations, mixtures of two encoded passages are distributed
    # like the vectors of the stand-in encoder.
    share = citations / CALIBRATE
    return calibrate.Effort(
        small=round(8_000 * share),
        large=citations,
        passages=round(60_000 * share),
        repeats=1,
        built=round(4_000 * share),
    )


class MeasuredBagOfWords(BagOfWords):
    """Stand-in encoder with the attributes that a calibration needs."""

    device = "cpu"
    dimensions = DIMENSIONS
    batch_size = 32
    token_offsets = None


def build(folder: Path, size: int, shards: int) -> tuple[Settings, BuildMeasured]:
    index = folder / f"plan-index-{size}"
    shutil.rmtree(index, ignore_errors=True)
    settings = stand_in_settings(index, shards)
    sources = sorted(sources_of(folder, size).glob("*.xml.gz"))
    return settings, build_by_stand_in(sources, settings)


def calibration(folder: Path, shards: int, chosen: calibrate.Effort) -> Coefficients:
    """Return the calibration stored in `folder`, or make one with the shipped serving figures."""
    kept = folder / "calibration.json"
    if kept.is_file():
        return read_coefficients(kept)
    serving = read_coefficients(None).serving
    calibrate.load_encoder = lambda _: MeasuredBagOfWords()  # type: ignore[assignment,return-value]
    calibrate.measure_serving = lambda *_: (serving, NO_REPLICA)  # type: ignore[attr-defined]
    settings, real = build(folder, chosen.built, shards)
    found = calibrate.measure_all(settings, real, print, (), chosen)
    write_coefficients(found, kept)
    return found


def compare(
    found: Coefficients, settings: Settings, real: BuildMeasured
) -> list[tuple[Figure, float]]:
    """Return the predictions for the number of citations that were built, with the measurements."""
    size = Size.of(found, settings, real.manifest.citations)
    phases = build_phases(found, size, Fleet.here(found, settings))
    seconds = {f.name: f.value for f in phases}
    seconds["all"] = sum(seconds.values())
    timed = ("all", "parse, embed", "index", "publish")
    return [
        (Figure("passages", size.passages, "", ""), real.manifest.passages),
        *((Figure(name, seconds[name], "seconds", ""), real.seconds[name]) for name in timed),
        *((f, real.bytes.get(f.name, 0)) for f in artefact_bytes(found, size)),
        *(
            (replace(f, name=f"memory of {f.name}"), real.memory[f.name])
            for f in process_memory(found, settings, size)
            if f.name in real.memory
        ),
    ]


def show(out: Console, rows: Sequence[tuple[Figure, float]]) -> None:
    table = Table("what", "predicted", "measured", "error")
    for figure, measured in rows:
        error = f"{figure.value / measured - 1:+.0%}" if measured else ""
        table.add_row(figure.name, str(figure), str(replace(figure, value=measured)), error)
    out.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 60_000])
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument(
        "--calibrate", type=int, default=CALIBRATE, help="citations of the calibration (32000)"
    )
    arguments = parse_arguments(parser, SMALLEST)
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    out = Console(width=100)
    found = calibration(folder, arguments.shards, effort(arguments.calibrate))
    for size in arguments.sizes:
        out.print(f"{size:,} citations in {arguments.shards} shards")
        settings, real = build(folder, size, arguments.shards)
        show(out, compare(found, settings, real))


if __name__ == "__main__":
    main()
