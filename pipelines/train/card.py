"""The card of a trained model: what it was made of, how, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

ABOUT = {
    "ner": "Recogniser: marks the entities of biomedical text.",
    "nli": "Claim checker: whether evidence supports a sentence, contradicts it, or neither.",
    "encoder": "Encoder for dense search and late interaction. It changes the vectors of an index.",
    "reader": "Reader: what a passage says to a question, for exact and extractive answers.",
    "reranker": "Late-interaction reranker: its token vectors, not the index', come from it.",
}
SETTING = {
    "ner": "recogniser",
    "nli": "support",
    "encoder": "encoder",
    "reader": "reader",
    "reranker": "reranker",
}
_MEAN = ["Of each training, beside its recipe; of their mean nothing was measured here."]
UNKNOWN = "Not stated: do not ship these weights before you know."


def render_card(training: Mapping[str, Any]) -> str:
    """Markdown of what `training.json` holds."""
    base, measured = training["base"], training["measured"]
    part = "adapter" if training["recipe"]["rank"] else "model"
    datasets = sorted({file["file"] for file in training["data"]})
    lines = [
        # As the Hugging Face hub has it: `citeray evaluate` looks there for leakage.
        "---",
        yaml.safe_dump({"datasets": datasets}, allow_unicode=True).strip(),
        "---",
        "",
        f"# {ABOUT[training['kind']]}",
        "",
        f"Made by `citeray train {training['kind']}` from `{base['model']}` "
        f"(sha256 {base['sha256'][:12]}). Use it with "
        f"`{SETTING[training['kind']]}.{part}: file:THIS_FOLDER`.",
        "",
        "## Data",
        "",
        *_files("Learned from", training["data"]),
        *_files("Measured on, never learned from", training["held_out"]),
        "",
        "## Licence",
        "",
        training["licence"] or UNKNOWN,
        "",
        "## Measured quality",
        "",
        *(_MEAN if "averaged" in training and not measured else _table(measured)),
        "",
        *_recipes(training),
        "",
    ]
    return "\n".join(lines)


def _recipes(training: Mapping[str, Any]) -> list[str]:
    """The recipe; of an average (`citeray train average`) those of all that went into it."""
    trainings = training.get("averaged", [training])
    lines = [] if len(trainings) == 1 else [f"The mean of {len(trainings)} trainings.", ""]
    for number, one in enumerate(trainings, start=1):
        lines += [f"## Recipe {number}" if len(trainings) > 1 else "## Recipe", ""]
        lines += [f"- {name}: `{value}`" for name, value in one["recipe"].items()]
        if len(trainings) > 1:
            note = [one["note"], ""] if "note" in one else []
            lines += ["", *note, *_table(one["measured"]), ""]
    return lines


def _files(title: str, files: Sequence[Mapping[str, str]]) -> list[str]:
    return [f"- {title}: {file['file']} (sha256 {file['sha256'][:12]})" for file in files]


def _table(measured: Mapping[str, float]) -> list[str]:
    if not measured:
        return ["Not measured: nothing was held out."]
    rows = [f"| {name} | {value:.3f} |" for name, value in measured.items()]
    return ["| | |", "| --- | --- |", *rows]
