"""Find the entities of a question, and the synonyms that widen its search.

A recogniser is anything with `entities(text) -> list[Entity]`: spans in code points of
`text`, in order and without overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from cluster.errors import InputError
from cluster.index.vocabulary import Vocabulary, normalise
from cluster.records import Entity
from serve.everyday_words import EVERYDAY_WORDS

MAX_NAME_WORDS = 8

_WORD = re.compile(r"\w+(?:['\u2019]s\b)?")


class Recogniser(Protocol):
    def entities(self, text: str) -> list[Entity]: ...


class VocabularyRecogniser:
    """Finds names of the vocabulary: the longest match, left to right."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def entities(self, text: str) -> list[Entity]:
        """Everyday words and question words are no entities, even if they are headings.

        Of several concepts with one name the most usual one is meant.
        """
        words = [match.span() for match in _WORD.finditer(text)]
        found: list[Entity] = []
        first = 0
        while first < len(words):
            after = first + 1
            for last in range(min(first + MAX_NAME_WORDS, len(words)), first, -1):
                entity = self._entity(text, words[first][0], words[last - 1][1])
                if entity is not None:
                    found.append(entity)
                    after = last
                    break
            first = after
        return found

    def _entity(self, text: str, begin: int, end: int) -> Entity | None:
        key = normalise(text[begin:end])
        if len(key) < 2 or _is_everyday(key) or not any(c.isalpha() for c in key):
            return None
        concepts = self._vocabulary.lookup(text[begin:end])
        if not concepts:
            return None
        meant = concepts[0]
        return Entity(
            text=text[begin:end],
            begin=begin,
            end=end,
            concept=meant.id,
            kind=meant.kind,
            synonyms=tuple(name for name in meant.names if normalise(name) != key),
        )


def expansion_terms(
    question: str, entities: Iterable[Entity], *, max_per_entity: int = 3, max_terms: int = 12
) -> list[str]:
    """Synonyms of a question's entities to add to its BM25 query, in order of the entities.

    A synonym whose words all stand in the question, or in a term before it, would only
    weigh those words anew, and a short form that reads as an everyday word once in lower
    case ("ALL") would search for that: neither is added.
    """
    said = _words(question)
    terms: list[str] = []
    for entity in entities:
        added = 0
        for synonym in entity.synonyms:
            words = _words(synonym)
            if words <= said or words <= EVERYDAY_WORDS:
                continue
            if added == max_per_entity or len(terms) == max_terms:
                break
            terms.append(synonym)
            said |= words
            added += 1
    return terms


def _is_everyday(key: str) -> bool:
    return key in EVERYDAY_WORDS or (len(key) > 3 and normalise(key.lower()) in EVERYDAY_WORDS)


def _words(text: str) -> set[str]:
    return {normalise(match[0].lower()) for match in _WORD.finditer(text)}


class TaggedToken(NamedTuple):
    """A subword of a token classifier with its span in the text and its best label."""

    token: str
    begin: int
    end: int
    label: str
    score: float


class TransformerRecogniser:
    """Any Hugging Face token classifier with a fast tokeniser, loaded from `model_dir`.

    `labels` are the entity types to keep, without B- and I-; none means all. Raises
    InputError if the model has no such label.
    """

    def __init__(self, model_dir: Path, labels: Sequence[str] = (), device: str = "cpu") -> None:
        # Imported here because a service with the vocabulary alone need not load torch.
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(model_dir, local_files_only=True)
        self._model = (
            AutoModelForTokenClassification.from_pretrained(
                model_dir, local_files_only=True, use_safetensors=True
            )
            .eval()
            .to(device)
        )
        self._names: dict[int, str] = self._model.config.id2label
        known = {_entity_type(name) for name in self._names.values()} - {""}
        if unknown := sorted(set(labels) - known):
            raise InputError(
                f"{model_dir}: no entity label {', '.join(unknown)}; "
                f"choose from {', '.join(sorted(known))}"
            )
        self._labels = frozenset(labels) or known

    def entities(self, text: str) -> list[Entity]:
        """Text beyond the model's length is not read."""
        import torch

        limit = min(self._tokenizer.model_max_length, self._model.config.max_position_embeddings)
        inputs = self._tokenizer(
            text,
            truncation=True,
            max_length=limit,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping")[0].tolist()
        tokens = self._tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._model.device)).logits[0]
        scores, best = logits.float().softmax(-1).max(-1)
        rows = [
            TaggedToken(token, begin, end, self._names[label], score)
            for token, (begin, end), label, score in zip(
                tokens, offsets, best.tolist(), scores.tolist(), strict=True
            )
        ]
        return [e for e in merge_subwords(text, rows) if e.kind in self._labels]


def merge_subwords(text: str, rows: Iterable[TaggedToken]) -> list[Entity]:
    """Entities out of tagged subwords, in order: whole words, scores averaged.

    Paper 000, section 3.2.1: consecutive subwords of one label make one name. A word's
    label is that of its first labelled subword, and its other subwords belong to it
    whatever their label. Neighbouring words of one type make one entity, until a B-
    begins another. Rows of empty span ([CLS], padding) are left out. The score is the
    mean over the entity's subwords.
    """
    open_rows: list[TaggedToken] = []
    found: list[Entity] = []
    for word in _whole_words(text, rows):
        label = next((row.label for row in word if _entity_type(row.label)), "")
        goes_on = (
            bool(open_rows)
            and _entity_type(open_rows[0].label) == _entity_type(label)
            and not (label.startswith("B-") and _apart(text, open_rows, word))
        )
        if open_rows and not goes_on:
            found.append(_joined(text, open_rows))
            open_rows = []
        if label:
            open_rows += [row._replace(label=label) for row in word]
    if open_rows:
        found.append(_joined(text, open_rows))
    return found


def _whole_words(text: str, rows: Iterable[TaggedToken]) -> Iterator[list[TaggedToken]]:
    word: list[TaggedToken] = []
    for row in rows:
        if row.begin == row.end:
            continue
        if word and not _continues(text, word[-1], row):
            yield word
            word = []
        word.append(row)
    if word:
        yield word


def _continues(text: str, previous: TaggedToken, row: TaggedToken) -> bool:
    """Whether no white space or punctuation parts the two, for any tokeniser's marks."""
    if previous.end != row.begin:
        return False
    return text[previous.end - 1].isalnum() and text[row.begin].isalnum()


def _apart(text: str, left: Sequence[TaggedToken], right: Sequence[TaggedToken]) -> bool:
    return bool(text[left[-1].end : right[0].begin])


def _entity_type(label: str) -> str:
    """`Chemical` for B-Chemical, I-Chemical and Chemical; "" for O."""
    return "" if label == "O" else re.sub(r"^[BI]-", "", label)


def _joined(text: str, rows: Sequence[TaggedToken]) -> Entity:
    begin, end = rows[0].begin, rows[-1].end
    return Entity(
        text=text[begin:end],
        begin=begin,
        end=end,
        concept="",
        kind=_entity_type(rows[0].label),
        score=sum(row.score for row in rows) / len(rows),
    )
