"""The vocabulary on disk: concepts and their names.

One Arrow IPC file with a row for each name, sorted by the name's normalised form (`key`, in UTF-8
byte order). The `concept` column is dictionary-encoded, so each concept is stored once. The file is
memory-mapped and names are found by binary search, so memory does not grow with the vocabulary.
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster.errors import IndexFormatError

FORMAT = b"1"
_FORMAT_KEY = b"citeray.vocabulary"

ConceptKind = Literal["mesh", "umls", "chemical", "keyword", "abbreviation"]

CONCEPT = pa.struct(
    [
        pa.field("id", pa.large_string()),
        pa.field("kind", pa.large_string()),
        pa.field("name", pa.large_string()),
        pa.field("names", pa.large_list(pa.large_string())),
        pa.field("uses", pa.large_list(pa.int64())),
        pa.field("citations", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        pa.field("key", pa.large_string()),
        pa.field("concept", pa.dictionary(pa.int32(), CONCEPT)),
    ],
    metadata={_FORMAT_KEY: FORMAT},
)

_GREEK = {ord(c): unicodedata.name(c).split()[-1].lower() for c in "αβγδεζηθικμνξοπρστυφχψω"}
_GREEK[ord("λ")] = "lambda"
_POSSESSIVE = re.compile(r"\s?['`\u2019\u00b4](?:s\b|(?=\s|$))", re.IGNORECASE)
_GAP = re.compile(r"[\s\u2010-\u2015\u2212_-]+")
_SHORT_PLURAL = re.compile(r"([A-Z]{2,})s")


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with its names.

    `id` is `mesh:UI`, `umls:CUI`, `chem:UI`, `kw:KEY` or `abbr:KEY`. `names` holds `name` and all
    its synonyms, one for each normalised form, most used first; `uses` is the number of citations
    with each. `citations` is the largest number of citations in any one source (headings,
    substances, keywords, definitions).
    """

    id: str
    kind: ConceptKind
    name: str
    names: tuple[str, ...]
    uses: tuple[int, ...]
    citations: int


def concept_of(row: dict[str, Any]) -> Concept:
    """Return the concept in a row of an Arrow array of CONCEPT."""
    return Concept(**row | {"names": tuple(row["names"]), "uses": tuple(row["uses"])})


def normalise(name: str) -> str:
    """Return the form in which names are compared, both in the index and in questions.

    Apply NFKC, replace hyphens and white space by one space, drop possessives and plurals (the S
    stemmer of D. Harman, "How effective is suffixing?", JASIS 42, 1991), spell out Greek letters,
    and fold case. A single word in capitals keeps its case, as does one of up to three letters with
    a capital after the first, so that "AS" differs from "as" and "CAT" from "cat".
    """
    # A shortcut for words in capitals, which are not changed below: there are millions of them.
    if name.isascii() and name.isalpha() and name.isupper():
        return name
    text = unicodedata.normalize("NFKC", name)
    text = _GAP.sub(" ", _POSSESSIVE.sub("", text)).strip()
    if plural := _SHORT_PLURAL.fullmatch(text):
        return plural[1]
    if _keeps_case(text):
        return text
    return " ".join(_singular(word) for word in text.casefold().translate(_GREEK).split(" "))


def _keeps_case(text: str) -> bool:
    if not text.isalpha():
        return False
    return text.isupper() or (len(text) <= 3 and not text[1:].islower() and not text.islower())


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")):
        return word
    if word.endswith("ies"):
        return word if word.endswith(("eies", "aies")) else word[:-3] + "y"
    return word if word.endswith(("aes", "ees", "oes")) else word[:-1]


def write_concepts(concepts: Any, keys: Any, path: Path) -> None:
    """Write the vocabulary file; the same concepts in the same order give the same bytes.

    `concepts` is an Arrow array of CONCEPT, `keys` the normalised form of each name of each
    concept, in order. Concepts that share a key are ordered by how often the name is used for each,
    then by their order in `concepts`. Takes memory of about twice the size of the file.
    """
    of_name = np.repeat(
        np.arange(len(concepts), dtype=np.int32), pc.list_value_length(concepts.field("names"))
    )
    uses = concepts.field("uses").flatten()
    rows = pa.table({"key": keys, "concept": of_name, "uses": uses}).sort_by(
        [("key", "ascending"), ("uses", "descending"), ("concept", "ascending")]
    )
    column = pa.DictionaryArray.from_arrays(rows["concept"].combine_chunks(), concepts)
    everything = pa.record_batch([rows["key"].combine_chunks(), column], schema=_SCHEMA)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_batch(everything)


class Vocabulary:
    """A memory-mapped vocabulary file. Read-only and safe to share between threads."""

    def __init__(self, rows: Any) -> None:
        """`rows` is the only record batch of the file."""
        keys, column = rows.columns
        self._keys = keys
        _, offsets, data = keys.buffers()
        self._offsets = memoryview(offsets or bytes(8)).cast("q")
        self._data = memoryview(data or b"")
        self._owners = column.indices
        self._concepts = column.dictionary
        self._citations = column.dictionary.field("citations").to_numpy(zero_copy_only=False)

    @classmethod
    def open(cls, path: Path) -> Vocabulary:
        """Map the file `path`. Raises IndexFormatError if missing, damaged or of another format."""
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            metadata = reader.schema.metadata or {}
            rows = reader.get_batch(0) if metadata.get(_FORMAT_KEY) == FORMAT else None
        except (OSError, pa.ArrowException) as error:
            raise IndexFormatError(
                f"{path}: cannot be read as a vocabulary ({error}); "
                "rebuild it with `citeray index build`"
            ) from error
        if rows is None:
            raise IndexFormatError(
                f"{path}: vocabulary format {metadata.get(_FORMAT_KEY)!r}, "
                f"this code reads {FORMAT!r}; rebuild it with `citeray index build`"
            )
        return cls(rows)

    def __len__(self) -> int:
        """The number of concepts."""
        return len(self._concepts)

    def lookup(self, name: str) -> list[Concept]:
        """Return the concepts with the name `name`, the most common one first; [] if none.

        A word of more than three letters in capitals that is not found is also tried in lower case,
        never the other way round.
        """
        key = normalise(name)
        found = self._with_key(key)
        if not found and len(key) > 3 and key.isupper():
            found = self._with_key(normalise(key.lower()))
        return found

    def beginning(self, prefix: str, most: int) -> list[tuple[str, int]]:
        """Return the keys that begin with the normalised `prefix`, with the row of each.

        Returns up to `most` keys, the most cited concepts first; at the limit, short keys win ties.
        """
        wanted, rows = prefix.encode(), range(len(self._owners))
        first = bisect.bisect_left(rows, wanted, key=self._key)
        last = bisect.bisect_left(rows, wanted + b"\xff", lo=first, key=self._key)
        owners = self._owners.slice(first, last - first).to_numpy()
        citations = self._citations[owners]
        if len(owners) > most:
            lengths = np.diff(np.asarray(self._offsets[first : last + 1]))
            order = np.lexsort((lengths, -citations))[:most]
        else:
            order = np.argsort(-citations, kind="stable")
        return [(self._key(first + at).decode(), first + at) for at in order.tolist()]

    def concept_at(self, row: int) -> Concept:
        """Return the concept of a row from `beginning`."""
        return self._concept(self._owners[row].as_py())

    def names_of(self, ids: str) -> list[str]:
        """Return the name of each concept whose id begins with `ids` and that has citations."""
        concepts = self._concepts
        wanted = pc.starts_with(concepts.field("id"), ids)
        held = pc.and_(wanted, pc.greater(concepts.field("citations"), 0))
        names: list[str] = concepts.field("name").filter(held).to_pylist()
        return names

    def words(self) -> list[str]:
        """Return the distinct words in all keys, 4 to 40 letters, sorted; takes some seconds."""
        words = pc.list_flatten(pc.split_pattern(self._keys, " ")).unique()
        letters = words.filter(pc.match_substring_regex(words, "^[a-z]{4,40}$"))
        return sorted(letters.to_pylist())

    def _with_key(self, key: str) -> list[Concept]:
        wanted = key.encode()
        rows = range(len(self._owners))
        first = bisect.bisect_left(rows, wanted, key=self._key)
        found = []
        while first < len(rows) and self._key(first) == wanted:
            found.append(self._concept(self._owners[first].as_py()))
            first += 1
        return found

    def _key(self, row: int) -> bytes:
        return bytes(self._data[self._offsets[row] : self._offsets[row + 1]])

    def _concept(self, ordinal: int) -> Concept:
        return concept_of(self._concepts[ordinal].as_py())
