"""How a preset writes its answers, as data; what it leaves open, the settings' `llm` says."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cluster.answers import Check

WrittenBy = Literal["model", "evidence"]
MaxWrong = Annotated[float, Field(strict=True, ge=0, le=1)]


class AnswerSettings(BaseModel):
    """The `answer` of a preset. None: as `llm` in the settings has it.

    `prompts` is a folder of configs/prompts; "" is the prompts that stand there themselves.
    `passages` is what the model reads of each beside its text: "described" the design of its
    study and the year, "ranked" its PMID and its relevance to the question, 0 to 1 (paper 001),
    "plain" nothing.
    `reasoned`: the model reasons before each answer, and a summary of what led to the ideal
    answer is passed on to the exact one (paper 000). `examples` is how many few-shot examples
    the model sees. `supported` adds a third answer, which cites passages by their number
    (paper 001). `check` is what becomes of the model's sentences that no evidence supports: they
    are dropped, or marked and left out of account, or marked and counted like the others ("off",
    as papers have it). Those with a link, an address or a PMID in their text are dropped always.
    `weigh` above 0 shows the model at most so many passages for and so many against instead of all
    by rank, and reads the PMIDs that it cites itself (paper 004). `max_wrong` is the error budget:
    the share of stated answers that may be wrong; an answer that is less certain is withheld, and
    1 states every answer. Where `ideal_from` is named and
    `exact_from` is not, the exact answer is from there too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompts: Annotated[str, Field(pattern=r"^[a-z0-9-]*$")] = ""
    passages: Literal["described", "ranked", "plain"] = "described"
    reasoned: bool = False
    examples: Annotated[int, Field(ge=0, le=10)] = 0
    supported: bool = False
    # YAML reads a bare `off` as false.
    check: Annotated[Check, BeforeValidator(lambda v: "off" if v is False else v)] = "drop"
    weigh: Annotated[int, Field(ge=0, le=50)] = 0
    max_words: Annotated[int, Field(gt=0)] = 200
    max_wrong: MaxWrong = 0.10
    ideal_from: WrittenBy | None = None
    exact_from: WrittenBy | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    ideal_tokens: Annotated[int, Field(gt=0)] | None = None
    exact_tokens: Annotated[int, Field(gt=0)] | None = None
    evidence_characters: Annotated[int, Field(gt=0)] | None = None
