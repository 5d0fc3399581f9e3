"""Find the long forms that a short form stands for often enough to be one of its meanings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cluster.text.vocabulary import normalise
from pipelines.vocabulary.sorted_runs import run_lengths, run_starts


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
