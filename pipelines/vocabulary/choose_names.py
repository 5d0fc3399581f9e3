"""Of all forms that name a concept: one for each key, the most used first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.vocabulary.sorted_runs import Rows, run_lengths, run_starts


@dataclass(frozen=True, slots=True)
class Uses:
    """Rows that say: in `citations` citations `form`, whose key is `key`, names `concept`.

    Concepts and keys are places in lists of them; the keys' list is in byte order.
    `is_given` marks a form that stands for its key however rarely it is used.
    """

    concept: Rows
    key: Rows
    form: Any
    citations: Rows
    is_given: NDArray[np.bool_]


def joined(parts: Sequence[Uses]) -> Uses:
    """The rows of all parts."""
    return Uses(
        np.concatenate([part.concept for part in parts]),
        np.concatenate([part.key for part in parts]),
        pa.concat_arrays([part.form for part in parts]),
        np.concatenate([part.citations for part in parts]),
        np.concatenate([part.is_given for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """A row for each key of each concept, by concept; in a concept its own key comes first."""

    concept: Rows
    key: Rows
    form: Any
    uses: Rows


def choose_names(uses: Uses, own_key: Rows) -> Names:
    """Each key's most used form, of equals the first in byte order, with the uses of all.

    `own_key` is each concept's own key, -1 where the most used one is; then by uses, then
    in byte order.
    """
    forms = _summed(uses)
    firsts = run_starts([forms.concept, forms.key])
    best = _best_forms(forms, firsts)
    concept, key = forms.concept[firsts], forms.key[firsts]
    used = np.add.reduceat(forms.citations, firsts)
    order = np.lexsort((key, -used, key != own_key[concept], concept))
    return Names(concept[order], key[order], forms.form.take(pa.array(best[order])), used[order])


def _summed(uses: Uses) -> Uses:
    """One row a form, sorted by concept, key, form."""
    table = pa.table({"concept": uses.concept, "key": uses.key, "form": uses.form})
    by = [(name, "ascending") for name in table.column_names]
    order = pc.sort_indices(table, sort_keys=by).to_numpy()
    concept, key, form = uses.concept[order], uses.key[order], uses.form.take(pa.array(order))
    firsts = run_starts([concept, key, form])
    return Uses(
        concept[firsts],
        key[firsts],
        form.take(pa.array(firsts)),
        np.add.reduceat(uses.citations[order], firsts),
        np.logical_or.reduceat(uses.is_given[order], firsts),
    )


def _best_forms(forms: Uses, firsts: Rows) -> Rows:
    """The row of the form that stands for each key; `firsts` are the keys' first rows."""
    weight = np.where(forms.is_given, np.iinfo(np.int64).max, forms.citations)
    sizes = run_lengths(firsts, len(weight))
    is_best = weight == np.repeat(np.maximum.reduceat(weight, firsts), sizes)
    candidates = np.flatnonzero(is_best)
    name = np.repeat(np.arange(len(firsts)), sizes)[candidates]
    best: Rows = candidates[run_starts([name])]
    return best
