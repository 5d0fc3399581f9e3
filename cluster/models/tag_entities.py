"""Find entities in a text with a token classifier: tag subwords, then merge them into names.

Training measures quality with this code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from cluster.models.hardware import choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from cluster.records import Entity
from cluster.text.sentences import sentence_spans

BATCH = 16


class TaggedToken(NamedTuple):
    """A subword of a token classifier with its span in the text and its best label."""

    token: str
    begin: int
    end: int
    label: str
    score: float


class EntityTagger:
    """A token classifier with labels such as B-Disease, I-Disease and O, and its fast tokeniser.

    `window_tokens` in the model's config is the window size of its training, in tokens.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._names: dict[int, str] = model.config.id2label
        positions = model.config.max_position_embeddings
        trained = getattr(model.config, "window_tokens", positions)
        self._limit = min(tokenizer.model_max_length, positions, trained)

    @classmethod
    def load(cls, model_dir: Path, device: str, dtype: str = "float32") -> Self:
        """Load a tagger from a folder. Raises InputError if it does not load."""
        try:
            tokenizer = AutoTokenizer.from_pretrained(model_dir, **SAFELY)
            model = AutoModelForTokenClassification.from_pretrained(
                model_dir, dtype=choose_dtype(dtype, device), **SAFE_WEIGHTS
            )
        except LOAD_ERRORS as error:
            raise unloadable(model_dir, "a recogniser", error) from error
        return cls(model.eval().to(device), tokenizer)

    @property
    def kinds(self) -> frozenset[str]:
        """The entity types of the model's labels."""
        return frozenset(entity_type(name) for name in self._names.values()) - {""}

    def entities(self, text: str) -> list[Entity]:
        """Return the entities of a text of any length, in order."""
        return self.tag([text])[0]

    def tag(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text; a long text is read in several windows."""
        found: list[list[Entity]] = [[] for _ in texts]
        places = [
            (number, begin, end)
            for number, text in enumerate(texts)
            for begin, end in text_windows(text, self._tokenizer, self._limit)
        ]
        # Texts of similar length share a batch to reduce padding.
        places.sort(key=lambda position: position[2] - position[1])
        for first in range(0, len(places), BATCH):
            batch = places[first : first + BATCH]
            pieces = [texts[number][begin:end] for number, begin, end in batch]
            for (number, begin, _), piece, rows in zip(
                batch, pieces, self._rows(pieces), strict=True
            ):
                found[number] += [_moved(e, begin) for e in merge_subwords(piece, rows)]
        return [sorted(entities, key=lambda e: e.begin) for entities in found]

    def _rows(self, texts: list[str]) -> Iterator[list[TaggedToken]]:
        inputs = self._tokenizer(
            texts,
            truncation=True,
            max_length=self._limit,
            padding=True,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping").tolist()
        with torch.inference_mode():
            logits = self._model(**inputs.to(self._model.device)).logits
        scores, best = logits.float().softmax(-1).max(-1)
        for row in range(len(texts)):
            tokens = self._tokenizer.convert_ids_to_tokens(inputs["input_ids"][row])
            yield [
                TaggedToken(token, begin, end, self._names[label], score)
                for token, (begin, end), label, score in zip(
                    tokens, offsets[row], best[row].tolist(), scores[row].tolist(), strict=True
                )
            ]


def text_windows(text: str, tokenizer: Any, limit: int) -> list[tuple[int, int]]:
    """Return (begin, end) of windows that cover `text`, each of at most `limit` tokens.

    The limit includes special tokens. A window ends at the end of a sentence, unless a single
    sentence is longer than a window.
    """
    encoded = tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
    )
    offsets: list[tuple[int, int]] = encoded["offset_mapping"]
    room = limit - tokenizer.num_special_tokens_to_add()
    begins = [begin for begin, _ in offsets]
    cuts = [bisect_right(begins, end - 1) for _, end in sentence_spans(text)]
    windows = []
    first = 0
    while first < len(offsets):
        last = min(first + room, len(offsets))
        if last < len(offsets):
            last = max((cut for cut in cuts if first < cut <= last), default=last)
        windows.append((offsets[first][0], offsets[last - 1][1]))
        first = last
    return windows


def _moved(entity: Entity, by: int) -> Entity:
    return replace(entity, begin=entity.begin + by, end=entity.end + by)


def merge_subwords(text: str, rows: Iterable[TaggedToken]) -> list[Entity]:
    """Merge tagged subwords into entities of whole words, in order.

    Consecutive subwords with the same label form one name (paper 000, section 3.2.1). The label of
    a word is that of its first labelled subword; the labels of its other subwords are ignored.
    Adjacent words of one type form one entity, unless a B- label begins another one. Rows with an
    empty span ([CLS], padding) are skipped. The score is the mean over the entity's subwords.
    """
    open_rows: list[TaggedToken] = []
    found: list[Entity] = []
    for word in _whole_words(text, rows):
        label = next((row.label for row in word if entity_type(row.label)), "")
        goes_on = (
            bool(open_rows)
            and entity_type(open_rows[0].label) == entity_type(label)
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
    """Return whether two subwords belong to one word, whatever markers the tokeniser uses."""
    if previous.end != row.begin:
        return False
    return text[previous.end - 1].isalnum() and text[row.begin].isalnum()


def _apart(text: str, left: Sequence[TaggedToken], right: Sequence[TaggedToken]) -> bool:
    return bool(text[left[-1].end : right[0].begin])


def entity_type(label: str) -> str:
    """Return the type in a label: `Chemical` for B-, I- and plain Chemical; "" for O."""
    return "" if label == "O" else re.sub(r"^[BI]-", "", label)


def _joined(text: str, rows: Sequence[TaggedToken]) -> Entity:
    begin, end = rows[0].begin, rows[-1].end
    return Entity(
        text=text[begin:end],
        begin=begin,
        end=end,
        concept="",
        kind=entity_type(rows[0].label),
        score=sum(row.score for row in rows) / len(rows),
    )
