"""Measure how well the support check rejects sentences with a wrong name.

    python -m benchmarks.bench_trust QUESTIONS.json --index INDEX [--limit 250]

QUESTIONS.json must have BioASQ's snippets and ideal answers. Prints the share of the sentences of
ideal answers that the check accepts, given the question's own snippets, and the same share after
one name in each sentence is replaced by a name from another question, or by an invented one.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from benchmarks.questions import asked, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.answers import Evidence
from cluster.records import Passage
from cluster.settings.settings import load_settings
from cluster.text.name_shapes import names_by_shape
from serve.answer.names.cluster_names import Recognise
from serve.graph.load_stages import load_encoder, load_recogniser, open_manifest
from serve.support.attribute_sentences import (
    SimilaritySupport,
    SupportScorer,
    attribute,
    split_sentences,
)
from serve.support.check_names import borrowed_names, invented_names

SMALLEST = "QUESTIONS --index INDEX"

INVENTED = ("Curevit", "Zelomab", "Branoxil", "Pentorex", "Mirvalin")
LONG = 4


def kept(
    said: Sequence[str],
    evidence: Sequence[Evidence],
    body: str,
    scorer: SupportScorer,
    recognise: Recognise,
    threshold: float,
) -> tuple[int, int]:
    """Return the numbers of (sentences that the scorer accepts, sentences that pass both checks).

    The second check requires that the names of a sentence occur in the evidence.
    """
    supported = [s for s in attribute(said, evidence, scorer, threshold=threshold) if s]
    true = 0
    for sentence in supported:
        names = [entity.text for entity in recognise(sentence.text)]
        names += names_by_shape(sentence.text)
        true += not borrowed_names(sentence, evidence, names, body) and not invented_names(
            sentence.text, evidence, names, body
        )
    return len(supported), true


def tell_names(given: argparse.Namespace) -> None:
    settings = load_settings(given.config, overrides(given))
    manifest = open_manifest(settings)
    scorer = SimilaritySupport(load_encoder(settings, manifest).encode)
    recognise = load_recogniser(settings, manifest).entities
    chance = random.Random(0)
    rows = []
    for row in asked(given):
        texts = [snippet["text"] for snippet in row.get("snippets", ())][:20]
        ideal = row.get("ideal_answer") or [""]
        said = split_sentences(ideal if isinstance(ideal, str) else ideal[0])
        evidence = [Evidence(Passage(n, "abstract", 0, len(t), t)) for n, t in enumerate(texts, 1)]
        names = [[e.text for e in recognise(s) if len(e.text) > LONG] for s in said]
        if said and evidence:
            rows.append((row["body"], evidence, said, names))
    others = [name for *_, found in rows for names in found for name in names]
    counts = {kind: [0, 0, 0] for kind in ("as it is", "another's name", "no one's name")}
    for body, evidence, said, found in rows:
        named = [(s, chance.choice(names)) for s, names in zip(said, found, strict=True) if names]
        cases = {
            "as it is": said,
            "another's name": [s.replace(name, chance.choice(others)) for s, name in named],
            "no one's name": [s.replace(name, chance.choice(INVENTED)) for s, name in named],
        }
        for kind, sentences in cases.items():
            threshold = settings.support.threshold
            found_here = kept(sentences, evidence, body, scorer, recognise, threshold)
            for position, count in enumerate((len(sentences), *found_here)):
                counts[kind][position] += count
    print("| sentences of ideal answers | number | supported by likeness | kept |")
    print("| --- | --- | --- | --- |")
    for kind, (number, supported, true) in counts.items():
        print(f"| {kind} | {number} | {supported / number:.3f} | {true / number:.3f} |")


def main() -> None:
    tell_names(parse_arguments(question_parser(__doc__, limit=250), SMALLEST))


if __name__ == "__main__":
    main()
