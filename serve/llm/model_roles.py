"""Language models by role; the writer's model is the default for every role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cluster.settings.settings import Settings
from cluster.settings.stages.llm import LanguageModelSettings, ModelsSettings, RoleSettings
from serve.llm.language_model import ChatModel, OpenAIChatModel

Role = Literal["writer", "rewriter", "ranker"]
# Returns a model served by this cluster, given its role ("" for the writer) and settings.
Served = Callable[[str, LanguageModelSettings], ChatModel]


@dataclass(frozen=True, slots=True)
class ModelRoles:
    """Available models by role; `writer` is None if there is none."""

    writer: ChatModel | None
    rewriters: tuple[ChatModel, ...] = ()
    ranker: ChatModel | None = None

    def of(self, role: Role, turn: int = 0) -> ChatModel | None:
        """Return the model of `role`; `turn` selects the rewriter, round-robin from 0."""
        if role == "rewriter" and self.rewriters:
            return self.rewriters[turn % len(self.rewriters)]
        if role == "ranker" and self.ranker is not None:
            return self.ranker
        return self.writer

    def every(self) -> list[ChatModel]:
        """Return all models, the writer first."""
        return [m for m in (self.writer, *self.rewriters, self.ranker) if m is not None]


NO_MODELS = ModelRoles(None)


def serves_models(settings: Settings) -> bool:
    """Return True if answering needs a model that this cluster has to serve."""
    roles = settings.models.roles()
    kinds = [settings.llm.kind, *(role.kind for name, role in roles.items() if name != "judge")]
    return "vllm" in kinds


def find_models(settings: Settings, served: Served | None = None) -> ModelRoles:
    """Return the models of the settings: those with a URL, and those from `served`.

    Without `served` the models of this cluster are unavailable, and the writer replaces them.
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
    """Return the model `name` of the settings, or None if it is unavailable."""
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
    """Return the settings with this role's model and replicas as `llm`, and no other role."""
    said = {name: getattr(role, name) for name in LanguageModelSettings.model_fields}
    llm = settings.llm.model_copy(update={**said, "kind": role.kind})
    serve = settings.serve.model_copy(update={"llm": role.stage or settings.serve.llm})
    return settings.model_copy(update={"llm": llm, "serve": serve, "models": ModelsSettings()})
