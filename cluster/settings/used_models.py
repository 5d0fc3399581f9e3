"""List the models that the settings name, and what each is used for."""

from __future__ import annotations

from cluster.settings.fields import ModelSettings
from cluster.settings.settings import Settings
from cluster.settings.stages.llm import LanguageModelSettings


def used_settings(settings: Settings) -> dict[str, ModelSettings]:
    """Return the settings of each model by its use, such as "encoder"."""
    uses: dict[str, ModelSettings] = {
        "encoder": settings.encoder,
        **({"llm": settings.llm} if settings.llm.kind == "vllm" else {}),
        "recogniser": settings.recogniser,
        "reranker": settings.reranker,
        "reader": settings.reader,
        **({"namer": settings.namer} if settings.uses_namer else {}),
        "support": settings.support,
        **settings.models.roles(),
    }
    return {use: named for use, named in uses.items() if named.model or named.adapter}


def used_models(settings: Settings, *, language_models: bool | None = None) -> dict[str, str]:
    """Return a mapping from a use, such as "encoder" or "encoder's adapter", to a model's name.

    `language_models` selects only the language models (True) or only the others (False).
    """
    uses: dict[str, str] = {}
    for use, named in used_settings(settings).items():
        if language_models in (None, isinstance(named, LanguageModelSettings)):
            uses |= {use: named.model, f"{use}'s adapter": named.adapter}
    if not language_models:
        uses["concepts"] = settings.vocabulary.concepts
        lexicons = enumerate(settings.vocabulary.lexicons, start=1)
        uses |= {f"lexicon {number}": name for number, name in lexicons}
    return {use: name for use, name in uses.items() if name}
