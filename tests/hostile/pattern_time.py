"""Time every regular expression of the source tree on texts made of its matches.

    python -m tests.hostile.pattern_time

Prints JSON with the number of timed patterns, and for each pattern whose time grows faster than the
text, the text that shows it. `test_pattern_time.py` runs it in a separate process.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise, product
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import from_regex

ROOT = Path(__file__).parents[2]
PACKAGES = ("cluster", "serve", "pipelines", "evaluation", "commands")
AT_START = frozenset({"match", "fullmatch"})
SHORT, TIMES = 2_000, 8
# Growth beyond this, for a text 8 times as long, is not linear; quadratic growth is 64.
MOST_GROWTH = 24
# Below this CPU time, growth cannot be distinguished from noise.
FLOOR_S = 0.02
# Maximum CPU time in seconds: linear growth with a large constant is also too slow.
LONGEST_S = 0.4
REPEATS = 4
MAX_PARTS = 10
# Number of matching texts per pattern, and their maximum length.
EXAMPLES = 12
MOST_CHARACTERS = 60
BLOCK = 20


class TooLongError(Exception):
    """A match took longer than `LONGEST_S` of CPU time."""


@dataclass(frozen=True, slots=True)
class Used:
    """A pattern, its flags, and whether it is matched only at the start of a text."""

    pattern: str
    flags: int
    at_start: bool


def patterns() -> dict[Used, str]:
    """Return the module of each pattern, from values of modules and calls in their sources."""
    found: dict[Used, str] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        names = [m.name for m in pkgutil.walk_packages(root.__path__, f"{package}.")]
        for name in [package, *names]:
            module = importlib.import_module(name)
            source = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
            calls = list(_calls(source))
            compiled = list(_compiled(vars(module)))
            for variable, pattern in compiled:
                methods = {method for owner, method, _ in calls if owner == variable}
                at_start = bool(methods) and methods <= AT_START
                flags = pattern.flags & ~re.UNICODE.value
                found.setdefault(Used(pattern.pattern, flags, at_start), name)
            known = {pattern.pattern for _, pattern in compiled}
            for owner, method, text in calls:
                if owner == "re" and text is not None and text not in known:
                    found.setdefault(Used(text, 0, method in AT_START), name)
    return found


def _compiled(values: Mapping[str, Any]) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield (variable, pattern) for each pattern of a module, also in collections."""
    for variable, value in values.items():
        for item in _within(value):
            if isinstance(item, re.Pattern) and isinstance(item.pattern, str):
                yield variable, item


def _within(value: Any) -> Iterator[Any]:
    """Yield the value and, for a collection, everything in it."""
    yield value
    if isinstance(value, tuple | list | dict):
        for inner in chain(value, value.values() if isinstance(value, dict) else ()):
            yield from _within(inner)


def _calls(source: ast.Module) -> Iterator[tuple[str, str, str | None]]:
    """Yield (object, method, literal first argument or None) of calls like `_NAME.sub(...)`."""
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr, None
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.func.value.id, node.func.attr, node.args[0].value


def matches(pattern: str, flags: int) -> list[str]:
    """Return short texts that the pattern matches, the shortest first."""
    found: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(from_regex(re.compile(pattern, flags)))
    def note(text: str) -> None:
        found.append(text[:MOST_CHARACTERS])

    note()
    return sorted(set(found), key=lambda text: (len(text), text))


def _most_common(pieces: Iterable[str]) -> list[str]:
    """Return the most common pieces, ties in alphabetical order."""
    counted = Counter(pieces)
    return sorted(counted, key=lambda piece: (-counted[piece], piece))[:MAX_PARTS]


def texts(pattern: str, flags: int, length: int) -> Iterator[str]:
    """Yield texts of about `length` characters that could be slow to match.

    They repeat texts that the pattern matches, and the characters and pairs of these texts.
    """
    whole = [text for text in matches(pattern, flags) if text]
    letters = _most_common(letter for text in whole for letter in set(text))
    pairs = _most_common(pair for text in whole for pair in set(map("".join, pairwise(text))))
    first = whole[0] if whole else ""
    seeds = [*whole[:MAX_PARTS], *letters, *pairs, "a", " ", "0", "a-", "a. "]
    for seed in dict.fromkeys(seeds):
        run = (seed * length)[:length]
        yield run
        yield run + "\u2603"
        yield first + run + "\n"
    near = list(dict.fromkeys([*pairs[:4], *whole[:3]]))
    for one, other in product(near, near):
        yield one * (length // (2 * len(one)) + 1) + other * (length // (2 * len(other)) + 1)
        block = one * BLOCK + other * BLOCK
        yield block * (length // len(block) + 1)


def cpu_s(pattern: re.Pattern[str], text: str, *, at_start: bool) -> float:
    """Return the CPU time of all matches in `text`, at most `LONGEST_S`."""
    begun = time.process_time()
    # The signal may still come while the timer is being stopped.
    try:
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        try:
            if at_start:
                pattern.match(text)
                pattern.fullmatch(text)
            else:
                for _ in pattern.finditer(text):
                    pass
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except TooLongError:
        return LONGEST_S
    return time.process_time() - begun


def slow_text(used: Used) -> str | None:
    """Return the text that shows superlinear time of the pattern, or None."""
    compiled = re.compile(used.pattern, used.flags)
    shorts = texts(used.pattern, used.flags, SHORT)
    for short, long in zip(shorts, texts(used.pattern, used.flags, SHORT * TIMES), strict=True):
        took = cpu_s(compiled, long, at_start=used.at_start)
        if took < FLOOR_S:
            continue
        # On a shared machine the minimum is the time of the pattern.
        again = (cpu_s(compiled, long, at_start=used.at_start) for _ in range(REPEATS))
        took = min(took, *again)
        # Repeat the short text, because the clock's resolution is 4 ms.
        once = sum(cpu_s(compiled, short, at_start=used.at_start) for _ in range(TIMES)) / TIMES
        if took >= LONGEST_S or took > MOST_GROWTH * max(once, FLOOR_S / MOST_GROWTH):
            shown = f"{short[:24]!r}...{short[-8:]!r}"
            return f"{took:.2f} s for {len(long):,} characters such as {shown}"
    return None


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def main() -> None:
    sys.path.insert(0, str(ROOT))
    signal.signal(signal.SIGPROF, _stop)
    found = patterns()
    slow = {
        f"{place}: {used.pattern[:90]}": shown
        for used, place in found.items()
        if (shown := slow_text(used))
    }
    print(json.dumps({"timed": len(found), "slow": slow}))


if __name__ == "__main__":
    main()
