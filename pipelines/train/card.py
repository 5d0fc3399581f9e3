"""Render the card of a trained model: its data, licence, measured quality and recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

CARD = "README.md"
ABOUT = {
    "ner": "Recogniser: marks the entities of biomedical text.",
    "encoder": "Encoder for dense search and late interaction. It changes the vectors of an index.",
    "reader": "Reader: how a passage answers a question, for exact and extractive answers.",
    "reranker": "Late-interaction reranker: its token vectors, not the index', come from it.",
    "namer": "Namer: a language model that tells how probable a name is as an answer.",
    "writer": "Writer: a language model that answers a question from the evidence in its prompt.",
}
SETTING = {
    "ner": "recogniser",
    "encoder": "encoder",
    "reader": "reader",
    "reranker": "reranker",
    "namer": "namer",
    "writer": "llm",
}
_BEFORE = "Learned from before, by its base model"
UNKNOWN = "Not stated: do not ship these weights before you know."


def render_card(training: Mapping[str, Any]) -> str:
    """Render the content of `training.json` as Markdown."""
    base, measured = training["base"], training["measured"]
    part = "adapter" if training["recipe"]["rank"] else "model"
    datasets = sorted({file["file"] for one in _stages(training) for file in one["data"]})
    lines = [
        # Front matter as on the Hugging Face hub; `citeray evaluate` checks it for leakage.
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
        *(line for one in _stages(training)[1:] for line in _files(_BEFORE, one["data"])),
        *_files("Measured on, never learned from", training["held_out"]),
        "",
        "## Licence",
        "",
        training["licence"] or UNKNOWN,
        *(
            f"\nLicence of the base model's training data: {one['licence'] or UNKNOWN}"
            for one in _stages(training)[1:]
        ),
        "",
        "## Measured quality",
        "",
        *_table(measured),
        "",
        "## Recipe",
        "",
        *(f"- {name}: `{value}`" for name, value in training["recipe"].items()),
        *(("", training["note"]) if "note" in training else ()),
        "",
    ]
    return "\n".join(lines)


def _stages(training: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the training and the earlier trainings of its base model, latest first."""
    stages = [training]
    while "before" in stages[-1]:
        stages.append(stages[-1]["before"])
    return stages


def _files(title: str, files: Sequence[Mapping[str, str]]) -> list[str]:
    return [f"- {title}: {file['file']} (sha256 {file['sha256'][:12]})" for file in files]


def _table(measured: Mapping[str, float]) -> list[str]:
    if not measured:
        return ["Not measured: nothing was held out."]
    rows = [f"| {name} | {value:.3f} |" for name, value in measured.items()]
    return ["| | |", "| --- | --- |", *rows]
