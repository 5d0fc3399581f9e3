"""Choose the names of each concept: one form for each key, the most used first."""

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
    """Uses of names: in `citations` citations, `form`, with the key `key`, names `concept`.

    Concepts and keys are indices into lists; the list of keys is in byte order. `is_given` marks a
    form that is chosen for its key even if it is rarely used.
    """

    concept: Rows
    key: Rows
    form: Any
    citations: Rows
    is_given: NDArray[np.bool_]


def joined(parts: Sequence[Uses]) -> Uses:
    """Return the rows of all parts."""
    return Uses(
        np.concatenate([part.concept for part in parts]),
        np.concatenate([part.key for part in parts]),
        pa.concat_arrays([part.form for part in parts]),
        np.concatenate([part.citations for part in parts]),
        np.concatenate([part.is_given for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Names:
    """One row for each key of each concept, sorted by concept; the concept's own key is first."""

    concept: Rows
    key: Rows
    form: Any
    uses: Rows


def choose_names(uses: Uses, own_key: Rows) -> Names:
    """Return the most used form of each key, with the total uses of all its forms.

    Ties between forms are broken by byte order. `own_key` holds the key that comes first in each
    concept, or -1 for the most used key. The other keys follow by uses, then in byte order.
    """
    forms = _summed(uses)
    firsts = run_starts([forms.concept, forms.key])
    best = _best_forms(forms, firsts)
    concept, key = forms.concept[firsts], forms.key[firsts]
    used = np.add.reduceat(forms.citations, firsts)
    order = np.lexsort((key, -used, key != own_key[concept], concept))
    return Names(concept[order], key[order], forms.form.take(pa.array(best[order])), used[order])


def _summed(uses: Uses) -> Uses:
    """Return one row per form, sorted by concept, key and form."""
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
    """Return the row of the chosen form of each key; `firsts` are the first rows of the keys."""
    weight = np.where(forms.is_given, np.iinfo(np.int64).max, forms.citations)
    sizes = run_lengths(firsts, len(weight))
    is_best = weight == np.repeat(np.maximum.reduceat(weight, firsts), sizes)
    candidates = np.flatnonzero(is_best)
    name = np.repeat(np.arange(len(firsts)), sizes)[candidates]
    best: Rows = candidates[run_starts([name])]
    return best
