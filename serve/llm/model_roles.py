"""Which language model does which part of the work: the writer's, where no other is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cluster.settings.settings import (
    LanguageModelSettings,
    ModelsSettings,
    RoleSettings,
    Settings,
)
from serve.llm.language_model import ChatModel, OpenAIChatModel

Role = Literal["writer", "rewriter", "ranker"]
# A model that this cluster serves, by its role's name ("" for the writer) and its settings.
Served = Callable[[str, LanguageModelSettings], ChatModel]


@dataclass(frozen=True, slots=True)
class ModelRoles:
    """The models at hand; None for a writer where there is none."""

    writer: ChatModel | None
    rewriters: tuple[ChatModel, ...] = ()
    ranker: ChatModel | None = None

    def of(self, role: Role, turn: int = 0) -> ChatModel | None:
        """The model of `role`; rewriters take turns, from 0."""
        if role == "rewriter" and self.rewriters:
            return self.rewriters[turn % len(self.rewriters)]
        if role == "ranker" and self.ranker is not None:
            return self.ranker
        return self.writer

    def every(self) -> list[ChatModel]:
        """All of them, the writer first."""
        return [m for m in (self.writer, *self.rewriters, self.ranker) if m is not None]


NO_MODELS = ModelRoles(None)


def serves_models(settings: Settings) -> bool:
    """Whether a question's path needs a model that this cluster has to serve."""
    roles = settings.models.roles()
    kinds = [settings.llm.kind, *(role.kind for name, role in roles.items() if name != "judge")]
    return "vllm" in kinds


def find_models(settings: Settings, served: Served | None = None) -> ModelRoles:
    """The models of the settings: those behind URLs, and those that `served` reaches.

    Without `served` a model of this cluster is not at hand, and the writer does its part.
    """
    found = {
        name: model
        for name, role in settings.models.roles().items()
        if name != "judge" and (model := find_model(settings, name, role, served)) is not None
    }
    rewriters = tuple(model for name, model in found.items() if name.startswith("rewriter"))
    writer = find_model(settings, "", settings.llm, served)
    return ModelRoles(writer, rewriters, found.get("ranker"))


def find_model(
    settings: Settings,
    name: str,
    chosen: LanguageModelSettings,
    served: Served | None = None,
) -> ChatModel | None:
    """The model `name` of the settings, or None where it is not at hand."""
    if chosen.kind == "vllm":
        return served(name, chosen) if served else None
    if chosen.kind == "none":
        return None
    stage = chosen.stage if isinstance(chosen, RoleSettings) else None
    return OpenAIChatModel(
        chosen.url,
        chosen.model_id,
        api_key_env=chosen.api_key_env,
        timeout_s=(stage or settings.serve.llm).deadline_s,
        completion=chosen.completion,
    )


def in_place_of_the_writer(settings: Settings, role: RoleSettings) -> Settings:
    """The settings with this role's model as `llm`, alone, and with its replicas."""
    said = {name: getattr(role, name) for name in LanguageModelSettings.model_fields}
    llm = settings.llm.model_copy(update={**said, "kind": role.kind})
    serve = settings.serve.model_copy(update={"llm": role.stage or settings.serve.llm})
    return settings.model_copy(update={"llm": llm, "serve": serve, "models": ModelsSettings()})
