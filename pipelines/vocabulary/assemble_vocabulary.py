"""Turn term counts and MeSH headings into the concepts of the vocabulary.

No step runs Python code per term: keys are ranked once, and from then on concepts, keys and counts
are numpy columns of integers. Strings are compared and copied only by Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster.text.vocabulary import CONCEPT, write_concepts
from pipelines.vocabulary.choose_names import Names, Uses, choose_names, joined
from pipelines.vocabulary.mine_vocabulary import TermCounts
from pipelines.vocabulary.name_headings import SOURCES, GivenName, heading_names, prefixed
from pipelines.vocabulary.own_keys import (
    NOBODY,
    Terms,
    dominant_pairs,
    keys_of_their_own,
    owners_of_keys,
)
from pipelines.vocabulary.sorted_runs import Rows, marked, run_starts

# Minimum share of the citations that define a short form: a long form with a smaller share is not
# used.
MIN_SHARE = 0.3
_KINDS = ("keyword", "abbreviation", "chemical", "mesh", "umls")
_PREFIXES = pa.array(["chem", "mesh", "umls"], pa.large_string())


def write_vocabulary(
    counts: TermCounts, given: Iterable[GivenName], path: Path, *, min_citations: int = 2
) -> None:
    """Write the vocabulary of a corpus to `path`; equal counts give equal bytes.

    The arguments are those of `assemble_concepts`.
    """
    concepts, keys = assemble_concepts(counts, given, min_citations=min_citations)
    write_concepts(concepts, keys, path)


def assemble_concepts(
    counts: TermCounts, given: Iterable[GivenName], *, min_citations: int = 2
) -> tuple[Any, Any]:
    """Return the concepts of a corpus and the keys of their names, for `write_concepts`.

    `given` are the names of a release of concepts. Headings and substances are concepts. A keyword
    or a long form that is one of their names is added to that concept; otherwise it becomes a
    concept of its own. A pair of short and long form is used if at least `min_citations` citations
    define it and these are at least MIN_SHARE of all citations that define this short form. A
    keyword that is only such a short form makes no concept. The order depends only on the
    arguments. Memory: a few times that of `counts` and `given`.
    """
    definitions = counts.of_kind("abbreviation")
    terms = Terms.of(
        counts.of_kind("keyword"),
        definitions,
        dominant_pairs(definitions, min_citations, MIN_SHARE),
        heading_names(counts, given),
    )
    owner = owners_of_keys(terms)
    is_own = keys_of_their_own(terms, owner)
    own_keys = np.flatnonzero(is_own)
    # Concepts that own a key come first, in the order of their keys, then the others by id.
    owned_by = np.where(owner == NOBODY, NOBODY, owner + len(own_keys))
    concept = np.where(is_own, np.cumsum(is_own) - 1, owned_by)
    heading = terms.heading_id + len(own_keys)
    counted, uncounted = _uses_by_source(terms, concept, heading)
    is_given = terms.headings["is_given"].to_numpy()
    own_key = np.concatenate([own_keys, np.full(len(terms.ids), NOBODY)])
    own_key[heading[is_given]] = terms.heading_key[is_given]
    names = choose_names(joined([*counted, uncounted]), own_key)
    citations = _largest_source(counted, len(own_key))
    return _columns(terms, own_keys, names, citations), terms.keys.take(pa.array(names.key))


def _uses_by_source(terms: Terms, concept: Rows, heading: Rows) -> tuple[list[Uses], Uses]:
    """Return the uses of names by source, and the uses of inverted headings in natural order.

    The latter do not count as a source. `concept` holds the concept of each key, `heading` that of
    each heading or substance.
    """
    keyword = concept[terms.keyword_key]
    kept = np.flatnonzero(keyword != NOBODY)
    keywords = terms.keywords.select(["form", "citations"]).take(pa.array(kept))
    pairs = terms.pairs
    sources = [
        _uses(keyword[kept], terms.keyword_key[kept], keywords),
        _uses(concept[terms.long_key], terms.long_key, terms.longs),
        _uses(concept[terms.pair_key], terms.short_key, pairs.rename_columns({"short": "form"})),
    ]
    for source in SOURCES:
        rows = np.flatnonzero(pc.equal(terms.headings["source"], source).to_numpy())
        named = terms.headings.take(pa.array(rows))
        uses = _uses(heading[rows], terms.heading_key[rows], named)
        if source == "turned":
            turned = uses
        else:
            sources.append(uses)
    return sources, turned


def _uses(concept: Rows, key: Rows, table: Any) -> Uses:
    has_given = "is_given" in table.column_names
    is_given = table["is_given"].to_numpy() if has_given else np.zeros(len(key), np.bool_)
    form = table["form"].combine_chunks()
    return Uses(concept, key, form, table["citations"].to_numpy(), is_given)


def _largest_source(sources: list[Uses], concepts: int) -> Rows:
    largest = np.zeros(concepts, np.int64)
    for source in sources:
        total = np.zeros(concepts, np.int64)
        np.add.at(total, source.concept, source.citations)
        np.maximum(largest, total, out=largest)
    return largest


def _columns(terms: Terms, own_keys: Rows, names: Names, citations: Rows) -> Any:
    """Return the concepts in the format of `write_concepts`."""
    is_keyword = marked(terms.keyword_key, len(terms.keys))[own_keys]
    of_id = pc.index_in(pc.utf8_slice_codeunits(terms.ids, 0, 4), _PREFIXES)
    kind = np.concatenate([np.where(is_keyword, 0, 1), of_id.to_numpy() + 2])
    prefix = pa.array(["kw:", "abbr:"], pa.large_string()).take(pa.array(kind[: len(own_keys)]))
    own_ids = prefixed(prefix, terms.keys.take(pa.array(own_keys)))
    firsts = run_starts([names.concept])
    offsets = pa.array(np.append(firsts, len(names.concept)))
    columns = {
        "id": pa.concat_arrays([own_ids, terms.ids]),
        "kind": pa.array(_KINDS, pa.large_string()).take(pa.array(kind)),
        "name": names.form.take(pa.array(firsts)),
        "names": pa.LargeListArray.from_arrays(offsets, names.form),
        "uses": pa.LargeListArray.from_arrays(offsets, pa.array(names.uses)),
        "citations": pa.array(citations),
    }
    return pa.StructArray.from_arrays(
        [columns[field.name] for field in CONCEPT], fields=list(CONCEPT)
    )
