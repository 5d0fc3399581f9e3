"""Answer settings of a preset; the settings' `llm` has the defaults for those that are None."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cluster.answers import Check
from cluster.settings.fields import Strict

WrittenBy = Literal["model", "evidence"]
MaxWrong = Annotated[float, Field(strict=True, ge=0, le=1)]


class AnswerSettings(Strict):
    """The `answer` section of a preset. None takes the value from `llm` in the settings.

    `prompts` is a folder in configs/prompts; "" is configs/prompts itself. `passages` is what the
    model is shown with the text of each passage: study design and year ("described"), PMID and
    relevance to the question from 0 to 1 ("ranked", paper 001), or nothing ("plain"). With
    `reasoned`, the model reasons before each answer, and a summary of its reasoning for the ideal
    answer is passed on to the exact answer (paper 000). `examples` is the number of few-shot
    examples. `supported` adds a third answer, which cites passages by number (paper 001).

    `check` sets what happens to sentences of the model that no evidence supports: they are dropped
    ("drop"), marked and ignored ("mark"), or marked and counted like the others ("off", as in the
    papers). Sentences that contain a link, an address or a PMID are always dropped. With `weigh`
    above 0, the model is shown at most this many passages for and this many against the answer,
    instead of all by rank, and the PMIDs that it cites are parsed from its text (paper 004).

    With `primary_sources`, sentences that cite a review also cite the study that it reports, if
    that study is in the index and supports the sentence. A `check` of "off" turns this off.

    `max_wrong` is the error budget, the share of stated answers that may be wrong: an answer that
    is less certain is withheld, and 1 states every answer. If `ideal_from` is set and `exact_from`
    is not, `ideal_from` applies to both.
    """

    prompts: Annotated[str, Field(pattern=r"^[a-z0-9-]*$")] = ""
    passages: Literal["described", "ranked", "plain"] = "described"
    reasoned: bool = False
    examples: Annotated[int, Field(ge=0, le=10)] = 0
    supported: bool = False
    # YAML reads a bare `off` as false.
    check: Annotated[Check, BeforeValidator(lambda v: "off" if v is False else v)] = "drop"
    weigh: Annotated[int, Field(ge=0, le=50)] = 0
    primary_sources: bool = True
    max_words: Annotated[int, Field(gt=0)] = 200
    max_wrong: MaxWrong = 0.10
    ideal_from: WrittenBy | None = None
    exact_from: WrittenBy | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    ideal_tokens: Annotated[int, Field(gt=0)] | None = None
    exact_tokens: Annotated[int, Field(gt=0)] | None = None
    evidence_characters: Annotated[int, Field(gt=0)] | None = None
