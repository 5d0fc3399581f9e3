"""Generate any number of synthetic citations, shaped like PubMed's, for load and scale tests.

Word frequencies follow Zipf's law, as in natural text, so that postings have realistic lengths: a
few words occur in most records, most words in few.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, islice, product
from pathlib import Path

from cluster.errors import InputError
from cluster.records import Chemical, Citation, MeshHeading, Section
from pipelines.sample.invent_byline import invent_authors, invent_pages
from pipelines.sample.read_facts import load_yaml
from pipelines.sample.render_articles import render_articles

_JOURNALS = ("Synthetic Journal of {}", "Generated Archives of {}", "Annals of Simulated {}")
_FIELDS = ("Cardiology", "Oncology", "Neurology", "Immunology", "Genetics", "Nephrology", "Surgery")
_LABELS = ("BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS")
_TYPES = ("Journal Article", "Review", "Clinical Trial", "Case Reports", "Meta-Analysis")

_WORDS = Path(__file__).parent / "words.yaml"
_VOCABULARY_SIZE = 60_000
_TOPICS = 4_000
_TOPIC_VOCABULARY = 12_000
_TOPIC_WORDS = 40
# Each sentence is a window of one long random word list, which is faster than drawing each word.
_RING_WORDS = 1 << 18
_FIRST_YEAR, _LAST_YEAR = 1975, 2025


def generate_citations(count: int, seed: int = 0, first_pmid: int = 1) -> Iterator[Citation]:
    """Yield `count` citations with PMIDs from `first_pmid` on; the same for the same seed.

    As in PubMed, 65% have an abstract, of about 1,300 characters on average, and a third of the
    abstracts have labelled sections. A record depends only on `seed` and its PMID, so that any
    range can be generated separately. Memory does not grow with `count`. Raises InputError for a
    negative count or a `first_pmid` below 1.
    """
    if count < 0 or first_pmid < 1:
        raise InputError(
            f"count is {count} and first_pmid {first_pmid}; they must be at least 0 and 1"
        )
    writer = _writer(seed)
    return (writer.citation(pmid) for pmid in range(first_pmid, first_pmid + count))


def write_generated(
    directory: Path, count: int, per_file: int = 30_000, seed: int = 0
) -> list[Path]:
    """Write generated citations to files named like NLM's: pubmed26n0001.xml.gz and so on.

    NLM's baseline has 30,000 records per file. Return the paths. Raises InputError if `per_file` is
    not positive.
    """
    if per_file < 1:
        raise InputError(f"per_file is {per_file}; it must be at least 1")
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, first in enumerate(range(0, count, per_file), start=1):
        path = directory / f"pubmed26n{number:04d}.xml.gz"
        size = min(per_file, count - first)
        render_articles(generate_citations(size, seed, first + 1), path)
        paths.append(path)
    return paths


@lru_cache(maxsize=1)
def _writer(seed: int) -> _Writer:
    # Cached because a writer takes half a second to create, and write_generated needs it per file.
    return _Writer(*_vocabulary(), seed)


def _vocabulary() -> tuple[list[str], list[str]]:
    """Return frequent real words and rarer invented terms, in order of frequency, all distinct."""
    lists = {name: words.split() for name, words in load_yaml(_WORDS).items()}
    parts = lists["stems"], lists["middles"], lists["endings"]
    short = ["".join(term) for term in product(*parts)]
    random.Random(0).shuffle(short)
    long = (f"{stem}o{term}" for stem in lists["stems"] for term in short)
    terms = chain(short, islice(long, _VOCABULARY_SIZE))
    return lists["common"], list(dict.fromkeys(terms))[: _VOCABULARY_SIZE - len(lists["common"])]


@dataclass(frozen=True, slots=True)
class _Topic:
    words: list[str]
    mesh: tuple[MeshHeading, ...]
    chemicals: tuple[Chemical, ...]


class _Writer:
    """Generates citations; holds the word list and the topics that all records share."""

    def __init__(self, common: list[str], terms: list[str], seed: int) -> None:
        self._seed = seed
        shared = random.Random(f"shared {seed}")
        # Mandelbrot's form of Zipf's law: the first ranks are less steep than 1/rank.
        weights = list(accumulate((rank + 2.7) ** -1.15 for rank in range(_VOCABULARY_SIZE)))
        self._ring = shared.choices(common + terms, cum_weights=weights, k=_RING_WORDS)
        known = terms[:_TOPIC_VOCABULARY]
        self._topics = [
            _topic(number, shared.sample(known, _TOPIC_WORDS)) for number in range(_TOPICS)
        ]
        self._topic_weights = list(accumulate(1 / (rank + 10) for rank in range(_TOPICS)))

    def citation(self, pmid: int) -> Citation:
        rng = random.Random(f"{self._seed} {pmid}")
        at = bisect(self._topic_weights, rng.random() * self._topic_weights[-1])
        topic = self._topics[min(at, _TOPICS - 1)]
        return Citation(
            pmid=pmid,
            title=self._sentence(rng, topic, rng.randint(7, 16)),
            sections=self._sections(rng, topic) if rng.random() < 0.65 else (),
            journal=rng.choice(_JOURNALS).format(rng.choice(_FIELDS)),
            # The number of articles grows with the years, as in PubMed.
            year=_FIRST_YEAR + int((_LAST_YEAR - _FIRST_YEAR + 1) * rng.random() ** 0.6),
            month=rng.randint(1, 12),
            languages=("eng",),
            publication_types=_TYPES[:1]
            if rng.random() < 0.7
            else (_TYPES[0], rng.choice(_TYPES[1:])),
            mesh=topic.mesh[: rng.randint(3, 12)],
            chemicals=topic.chemicals[: rng.randint(0, 4)],
            keywords=tuple(topic.words[: rng.randint(0, 5)]),
            doi=f"10.5555/generated.{pmid}" if rng.random() < 0.8 else "",
            # Drawn last, so that a seed gives the same texts as in earlier measurements.
            authors=invent_authors(rng, min(26, 1 + int(rng.expovariate(0.22)))),
            volume=str(rng.randint(1, 120)),
            issue=str(rng.randint(1, 24)),
            pages=invent_pages(rng),
            references=_references(rng, pmid),
        )

    def _sections(self, rng: random.Random, topic: _Topic) -> tuple[Section, ...]:
        # Most abstracts have six to nine sentences of about 20 words.
        sentences = max(2, min(24, round(rng.gauss(7.3, 2.5))))
        texts = [self._sentence(rng, topic, rng.randint(12, 26)) for _ in range(sentences)]
        if sentences < len(_LABELS) or rng.random() > 0.35:
            return (Section("", " ".join(texts)),)
        cuts = [round(sentences * part / len(_LABELS)) for part in range(len(_LABELS) + 1)]
        return tuple(
            Section(label, " ".join(texts[begin:end]))
            for label, begin, end in zip(_LABELS, cuts, cuts[1:], strict=False)
        )

    def _sentence(self, rng: random.Random, topic: _Topic, words: int) -> str:
        begin = rng.randrange(_RING_WORDS - words)
        chosen = self._ring[begin : begin + words]
        # One word in six is from the topic, enough for records of a topic to match each other.
        for at in range(rng.randrange(6), words, 6):
            chosen[at] = topic.words[int(_TOPIC_WORDS * rng.random() ** 2)]
        text = " ".join(chosen)
        return text[0].upper() + text[1:] + "."


def _references(rng: random.Random, pmid: int) -> tuple[int, ...]:
    """Return distinct PMIDs below `pmid`; most PubMed records have none, some have hundreds."""
    count = min(pmid - 1, int(rng.lognormvariate(3.2, 0.7))) if rng.random() < 0.6 else 0
    return tuple(rng.sample(range(1, pmid), count))


def _topic(number: int, words: list[str]) -> _Topic:
    return _Topic(
        words,
        tuple(
            MeshHeading(f"D{900_000 + number * 12 + at}", word.capitalize(), major=at < 2)
            for at, word in enumerate(words[:12])
        ),
        tuple(
            Chemical(f"C{900_000 + number * 4 + at}", word) for at, word in enumerate(words[12:16])
        ),
    )
