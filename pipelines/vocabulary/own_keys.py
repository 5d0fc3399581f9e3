"""Find the owner of each key: a heading, a substance, a concept of its own, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cluster.text.vocabulary import normalise
from pipelines.vocabulary.name_headings import SOURCES
from pipelines.vocabulary.sorted_runs import Rows, marked, ranked, run_lengths, run_starts

NOBODY = -1


@dataclass(frozen=True, slots=True)
class Terms:
    """Tables of terms that name concepts, and for each row the index of its key in `keys`.

    `longs` are the spellings of the long forms of `pairs`, `headings` the names of headings and
    substances; `short_key` holds the keys of the short forms of `pairs`. `ids` are the distinct ids
    of headings and substances, and `heading_id` the indices of `headings` in `ids`. `keys` and
    `ids` are in byte order.
    """

    keys: Any
    keywords: Any
    longs: Any
    pairs: Any
    headings: Any
    keyword_key: Rows
    long_key: Rows
    pair_key: Rows
    short_key: Rows
    heading_key: Rows
    ids: Any
    heading_id: Rows

    @classmethod
    def of(cls, keywords: Any, definitions: Any, pairs: Any, headings: Any) -> Terms:
        """Create the terms; `definitions` of long forms without a pair are left out."""
        is_in_pair = pc.is_in(definitions["key"], pairs["key"].combine_chunks())
        longs = definitions.select(["key", "form", "citations"]).filter(is_in_pair)
        tables = (keywords, longs, pairs, headings)
        columns = [table["key"] for table in tables]
        keys, places = ranked([*columns, pairs["short_key"]])
        keyword_key, long_key, pair_key, heading_key, short_key = places
        ids, (heading_id,) = ranked([headings["id"]])
        return cls(
            keys,
            *tables,
            keyword_key=keyword_key,
            long_key=long_key,
            pair_key=pair_key,
            short_key=short_key,
            heading_key=heading_key,
            ids=ids,
            heading_id=heading_id,
        )


def owners_of_keys(terms: Terms) -> Rows:
    """Return the owner of each key: the index of a heading or substance in `ids`, or NOBODY."""
    owner = _first_owners(terms)
    _join_long_forms(terms, owner)
    return owner


def _first_owners(terms: Terms) -> Rows:
    """Return the owner of each key; of several, the one whose name is from the first of SOURCES.

    Ties go to the smaller id.
    """
    order = np.lexsort((terms.heading_id, _source(terms)))
    owner = np.full(len(terms.keys), NOBODY)
    # If numpy assigns one index several times, the last value stays.
    last_to_first = order[::-1]
    owner[terms.heading_key[last_to_first]] = terms.heading_id[last_to_first]
    return owner


def _source(terms: Terms) -> Rows:
    """Return the index of each heading row's source in SOURCES."""
    places = pc.index_in(terms.headings["source"], pa.array(SOURCES, pa.large_string()))
    return np.asarray(places.to_numpy(), np.int64)


def _join_long_forms(terms: Terms, owner: Rows) -> None:
    """Assign long forms without an owner to the owner of their most used owned short form.

    Ties go to the first in byte order. Short forms that are only a synonym of the owner are
    ignored, as they are ambiguous: in a release, ALS is a synonym of amyotrophic lateral sclerosis,
    but in the corpus it also stands for advanced life support.
    """
    is_its_name = _source(terms) < SOURCES.index("synonym")
    names = marked(terms.heading_key[is_its_name], len(terms.keys))[terms.short_key]
    joins = (owner[terms.pair_key] == NOBODY) & (owner[terms.short_key] != NOBODY) & names
    long, short = terms.pair_key[joins], terms.short_key[joins]
    citations = terms.pairs["citations"].to_numpy()[joins]
    order = np.lexsort((short, long))
    firsts = run_starts([long[order], short[order]])
    uses = np.add.reduceat(citations[order], firsts)
    long, short = long[order][firsts], short[order][firsts]
    order = np.lexsort((short, -uses, long))
    best = order[run_starts([long[order]])]
    owner[long[best]] = owner[short[best]]


def keys_of_their_own(terms: Terms, owner: Rows) -> NDArray[np.bool_]:
    """Return which keys without an owner make a concept: all but keywords that are short forms."""
    is_keyword, is_long, is_short = (
        marked(rows, len(terms.keys))
        for rows in (terms.keyword_key, terms.pair_key, terms.short_key)
    )
    is_own: NDArray[np.bool_] = (owner == NOBODY) & (is_long | (is_keyword & ~is_short))
    return is_own


def dominant_pairs(definitions: Any, min_citations: int, min_share: float) -> Any:
    """Return the columns key (of the long form), short, short_key (normalised short) and citations.

    `definitions` are the abbreviations of term counts. A pair is kept if at least `min_citations`
    citations define it, in any spelling of the long form, and these are at least `min_share` of all
    citations that define this short form. Python code runs only for distinct kept short forms.
    """
    shorts = definitions["short"].combine_chunks().dictionary_encode()
    starts = run_starts([definitions["key"]])
    key = np.repeat(np.arange(len(starts)), run_lengths(starts, len(definitions)))
    short = shorts.indices.to_numpy()
    order = np.lexsort((short, key))
    firsts = run_starts([key[order], short[order]])
    pairs = order[firsts]
    citations = np.add.reduceat(definitions["citations"].to_numpy()[order], firsts)
    totals = np.zeros(len(shorts.dictionary), np.int64)
    np.add.at(totals, short[pairs], citations)
    share = citations / totals[short[pairs]]
    kept = (citations >= min_citations) & (share >= min_share)
    columns = definitions.select(["key", "short"]).take(pairs[kept])
    return columns.append_column("short_key", _normalised(columns["short"])).append_column(
        "citations", pa.array(citations[kept])
    )


def _normalised(strings: Any) -> Any:
    distinct = strings.combine_chunks().dictionary_encode()
    keys = [normalise(string) for string in distinct.dictionary.to_pylist()]
    return pa.array(keys, pa.large_string()).take(distinct.indices)
