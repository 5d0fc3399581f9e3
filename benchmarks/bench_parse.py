"""Compare the speed of parsing PubMed XML with pubmed_parser and bare XML parsers.

    python -m benchmarks.bench_parse [FILE or FOLDER ...] [--records 2000] [--rounds 5]

Parses `--records` generated records, then each FILE or FOLDER of `.xml.gz`.
All contenders read the same files on one core in the same run, in an order that is reversed after
each round. Prints citations per second of CPU time (medians) and their ratios; rates depend on the
machine, ratios carry over.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from xml.parsers import expat

import pubmed_parser
from lxml import etree

from benchmarks.smallest import parse_arguments
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.sample.generate_citations import write_generated

SMALLEST = "--records 20 --rounds 1"
ROUNDS = 5


def measure(path: Path, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median citations/s of each contender on a file or folder, and their ratios.

    A folder must contain `.xml.gz` files. Uses the CPU time of this process, so that other load on
    the machine has little effect.
    """
    files = sorted(path.glob("*.xml.gz")) if path.is_dir() else [path]
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    count = 0
    for turn in range(rounds):
        for name in list(CONTENDERS)[:: -1 if turn % 2 else 1]:
            begin = time.process_time()
            found = sum(CONTENDERS[name](file) for file in files)
            count = max(count, found)
            seconds[name].append(time.process_time() - begin)
    rates = {name: count / median(taken) for name, taken in seconds.items()}
    return {
        "citations": count,
        **{f"{name}_per_s": rate for name, rate in rates.items()},
        "citeray_over_pubmed_parser": rates["citeray"] / rates["pubmed_parser"],
        "citeray_over_bare_lxml": rates["citeray"] / rates["lxml"],
        "citeray_over_bare_expat": rates["citeray"] / rates["expat"],
    }


def parse_citeray(path: Path) -> int:
    return sum(isinstance(record, Citation) for record in read_records(path))


def parse_pubmed_parser(path: Path) -> int:
    return sum(1 for _ in pubmed_parser.parse_medline_xml(str(path)))


def parse_bare_lxml(path: Path) -> int:
    """Build and drop the XML trees without reading them. Return the number of articles."""
    count = 0
    with gzip.open(path) as file:
        for _, element in etree.iterparse(file, events=("end",), tag="PubmedArticle"):
            count += 1
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    return count


def parse_bare_expat(path: Path) -> int:
    """Parse the XML without handlers. Returns 0, because no element is reported or counted."""
    with gzip.open(path) as file:
        expat.ParserCreate().ParseFile(file)
    return 0


CONTENDERS: Mapping[str, Callable[[Path], int]] = {
    "citeray": parse_citeray,
    "pubmed_parser": parse_pubmed_parser,
    "lxml": parse_bare_lxml,
    "expat": parse_bare_expat,
}


def report(name: str, figures: Mapping[str, float]) -> str:
    rows = (f"  {key.replace('_', ' '):28}{value:10,.2f}" for key, value in figures.items())
    return "\n".join([name, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE or FOLDER")
    parser.add_argument(
        "--records", type=int, default=2_000, help="generated records (default 2000)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as folder:
        generated = write_generated(Path(folder), given.records, per_file=given.records)
        for path in [*generated, *given.paths]:
            print(report(path.name, measure(path, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
