"""Render the report page: one HTML file that works offline and runs no script.

Nothing is scored here. The output is deterministic. Texts may contain anything: they are escaped,
and limited in length and number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically
from evaluation.bootstrap import Interval
from evaluation.report.report import Group, Report, SnippetRow

WORST_SHOWN = 30
ROWS_SHOWN = 50
TEXT_SHOWN = 2000
WEB = ("https://", "http://")
# Characters that HTML text cannot contain; U+FFFD replaces them.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)

# Family titles by the first one or two words of a measure; the default is the first word.
FAMILIES = {
    "documents": "Documents",
    "snippets": "Snippets",
    "yesno": "Yes/no answers",
    "factoid": "Factoid answers",
    "list": "List answers",
    **dict.fromkeys(("ROUGE-2", "ROUGE-SU4", "ideal"), "Ideal answers: ROUGE"),
    "exact": "Exact answers: BLEU and BERTScore",
    "verdict": "Verdicts",
    "answered": "Accuracy among the answered",
    **dict.fromkeys(
        ("risk", "coverage yesno", "coverage factoid", "coverage list"), "Risk and coverage"
    ),
    "agreement": "Agreement of exact and ideal answers",
    **dict.fromkeys(
        ("documents condensed", "documents unjudged", "condensed", "unjudged"),
        "Condensed list and unjudged documents",
    ),
    **dict.fromkeys(("citation", "support", "contradict", "uncited"), "BioGen: citations"),
    "document": "BioGen: documents",
    "expert": "BioGen: by experts' labels",
    "share": "BioGen: origin of the judgements",
    **dict.fromkeys(("faithfulness", "answer", "context"), "RAGAS"),
}


@dataclass(frozen=True, slots=True)
class Family:
    """Measures of one kind; `groups` are the groups that have at least one of them."""

    title: str
    names: tuple[str, ...]
    groups: tuple[Group, ...]


def write_report(folder: Path, report: Report) -> Path:
    """Write `folder`/index.html atomically and return its path.

    Raises InputError if the folder cannot be created or written to.
    """
    page = render_report(report)
    path = folder / "index.html"
    try:
        write_atomically(path, page.encode())
    except OSError as error:
        raise InputError(
            f"{path}: the report cannot be written: {error.strerror}; name another folder"
        ) from None
    return path


def render_report(report: Report) -> str:
    """Return the page as HTML."""
    page = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.filters |= {"cut": cut, "number": number, "parts": parts}
    # Other addresses, such as `javascript:`, must not become links.
    page.tests |= {"applied": _applies, "web": lambda text: text.startswith(WEB)}
    text = page.get_template("report.html").render(
        report=report,
        headline=report.groups[0] if report.groups else None,
        families=_families(report),
        worst_shown=WORST_SHOWN,
        rows_shown=ROWS_SHOWN,
    )
    return _FORBIDDEN.sub("\ufffd", text)


def cut(text: str) -> str:
    """Return the first 2,000 characters, followed by the number of characters left out."""
    more = len(text) - TEXT_SHOWN
    return text if more <= 0 else f"{text[:TEXT_SHOWN]}… ({more:,} more characters)"


def parts(snippet: SnippetRow) -> tuple[str, str, str]:
    """Return the text before, in and after the matched part, shortened as by `cut`."""
    text, end_mark = snippet.text[:TEXT_SHOWN], cut(snippet.text)[TEXT_SHOWN:]
    if not snippet.hit:
        return text + end_mark, "", ""
    begin, end = snippet.matched or (0, len(text))
    return text[:begin], text[begin:end], text[end:] + end_mark


def number(value: float) -> str:
    """Format a value with four decimals, as on the terminal."""
    return "n/a" if math.isnan(value) else f"{value:z.4f}"


def _applies(interval: Interval | None) -> bool:
    return interval is not None and not math.isnan(interval.value)


def _families(report: Report) -> list[Family]:
    titles: dict[str, dict[str, None]] = {}
    for group in report.groups:
        for name, interval in group.measures.items():
            if _applies(interval):
                titles.setdefault(_title(name), {})[name] = None
    return [_family(title, tuple(names), report) for title, names in titles.items()]


def _title(name: str) -> str:
    first, *more = name.split(" ", 2)
    return FAMILIES.get(" ".join([first, *more[:1]])) or FAMILIES.get(first, first)


def _family(title: str, names: tuple[str, ...], report: Report) -> Family:
    groups = [g for g in report.groups if any(_applies(g.measures.get(name)) for name in names)]
    # Omit the group of all questions if only one type has the measures, with the same values.
    if len(groups) == 2 and _values(groups[0], names) == _values(groups[1], names):
        del groups[0]
    return Family(title, names, tuple(groups))


def _values(group: Group, names: Iterable[str]) -> list[float]:
    return [group.measures[name].value for name in names if _applies(group.measures.get(name))]
