"""One Markdown table of presets, measures and latency, for the documentation."""

from __future__ import annotations

import re
from collections import Counter

from evaluation.ablation.tabulate_runs import CANDIDATES, Ablation, SystemRow
from evaluation.tables.markdown import table_lines

MAP = "documents MAP"
MEASURES = {
    f"documents recall@{CANDIDATES}": f"recall@{CANDIDATES}",
    "snippets F1": "snippets F1",
    "yesno accuracy": "yes/no accuracy",
    "yesno macro F1": "yes/no macro F1",
    "factoid MRR": "factoid MRR",
    "list F1": "list F1",
    "ROUGE-2 F1": "ROUGE-2",
    "ROUGE-SU4 F1": "ROUGE-SU4",
}
LATENCIES = ("search p50, p95 ms", "whole p50, p95 ms")


def markdown_table(found: Ablation) -> str:
    """Return a table with one row per system, followed by a list of degradations.

    A dash means that a measure does not apply. MAP@10 has its 95% interval. The columns "search"
    are the summed times of all stages up to the ranking, "whole" the waits for the reply.
    """
    headings = ["system", "documents MAP@10", *MEASURES.values(), *LATENCIES]
    lines = [
        f"{found.systems[0].questions} questions, index {found.index_version}.",
        "",
        *table_lines(headings, [_cells(system) for system in found.systems]),
    ]
    losses = [line for system in found.systems for line in _losses(system)]
    return "\n".join([*lines, *(["", "Degraded:", "", *losses] if losses else [])])


def _cells(system: SystemRow) -> list[str]:
    ranked = system.measures.get(MAP)
    shown = f"{ranked.value:.3f} ({ranked.low:.3f}-{ranked.high:.3f})" if ranked else "-"
    values = (system.measures.get(name) for name in MEASURES)
    return [
        f"`{system.name}`",
        shown,
        *("-" if value is None else f"{value.value:.3f}" for value in values),
        f"{system.latency_median:,.0f}, {system.latency_p95:,.0f}",
        f"{system.whole_median:,.0f}, {system.whole_p95:,.0f}",
    ]


def _losses(system: SystemRow) -> list[str]:
    """Return one line per kind of degradation, since counts in the messages vary by question."""
    kinds: Counter[str] = Counter()
    for loss, questions in system.degraded.items():
        kinds[re.sub(r"\b\d+\b", "N", loss)] += questions
    return [
        f"- `{system.name}`: {questions} of {system.questions} questions: {kind}"
        for kind, questions in kinds.items()
    ]
