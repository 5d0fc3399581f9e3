"""Settings of the language models: the writer, and models for single roles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cluster.settings.answer_settings import WrittenBy
from cluster.settings.fields import ModelSettings, Positive, Strict
from cluster.settings.stages.serving import StageSettings


class LanguageModelSettings(ModelSettings):
    """A language model: where it runs, and the options of its engine if it is served here.

    Kind `vllm` serves `model` through Ray, with `adapter` merged into it; kind `url` calls an
    OpenAI-compatible endpoint. Set `completion` for a base model, which has no chat template and
    only continues a text.
    """

    kind: Literal["vllm", "url", "none"]
    model_id: str
    url: str = ""
    api_key_env: str = ""
    completion: bool = False
    accelerator: str = ""
    tensor_parallel: Positive = 1
    engine: dict[str, Any] = Field(default={})
    environment: dict[str, str] = Field(default={})
    max_concurrent: Positive = 8


class LLMSettings(LanguageModelSettings):
    """The writer, which also does the work of every role that `models` does not assign.

    `ideal_from` and `exact_from` are the sources of the ideal and the exact answer if the preset
    names none: the model, or sentences and names of the evidence. `examples` is the folder of
    few-shot examples, for presets that use them.
    """

    examples: Path | None = None
    ideal_tokens: Positive
    exact_tokens: Positive
    ideal_from: WrittenBy
    exact_from: WrittenBy
    temperature: Annotated[float, Field(ge=0)]
    evidence_characters: Positive


class RoleSettings(LanguageModelSettings):
    """A language model for one role. `stage` sets its replicas (default: as `serve.llm`)."""

    stage: StageSettings | None = None

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.kind == "none":
            raise ValueError("kind none: remove the role, and the writer's model does its work")
        wanted = "model" if self.kind == "vllm" else "url"
        if not getattr(self, wanted):
            raise ValueError(f"kind {self.kind} needs {wanted}")
        return self


class ModelsSettings(Strict):
    """Language models for single roles; the writer does the work of a role without a model.

    `rewriters` rewrite questions, and take turns if a question is rewritten several times (paper
    003 has one pseudo-document from each of two); `ranker` ranks passages (004: RankZephyr);
    `judge` judges answers for `evaluate` and `ablate`, and is not served with the endpoint.
    """

    rewriters: tuple[RoleSettings, ...] = ()
    ranker: RoleSettings | None = None
    judge: RoleSettings | None = None

    def roles(self) -> dict[str, RoleSettings]:
        """Return the models by role: "rewriter-0", "rewriter-1", "ranker", "judge"."""
        found = {f"rewriter-{number}": role for number, role in enumerate(self.rewriters)}
        found |= {"ranker": self.ranker} if self.ranker else {}
        return found | ({"judge": self.judge} if self.judge else {})
