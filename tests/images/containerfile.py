"""Parse a Containerfile into its instructions."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {name: ROOT / f"images/Containerfile.{name}" for name in ("cpu", "gpu")}


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return (instruction, arguments) in order, without comments."""
    lines = [s for s in path.read_text(encoding="utf-8").splitlines() if not s.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    found = (line.split(None, 1) for line in whole.splitlines() if line.strip())
    return [(word, " ".join(rest.split())) for word, rest in found]


def stages(path: Path) -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions(path):
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def copied(path: Path) -> list[tuple[str, str]]:
    """Return (source, target) of everything copied from the working tree."""
    pairs = []
    for word, rest in instructions(path):
        if word == "COPY" and "--from" not in rest:
            *sources, target = rest.split()
            pairs += [(source, target) for source in sources]
    return pairs


def environment(path: Path) -> dict[str, str]:
    """Return the variables that ENV sets in the last stage."""
    text = " ".join(rest for word, rest in stages(path)[-1] if word == "ENV")
    return dict(pair.split("=", 1) for pair in text.split())
