"""List the models that the settings name, and what each is used for."""

from __future__ import annotations

from cluster.settings.settings import Settings


def used_models(settings: Settings) -> dict[str, str]:
    """Return a mapping from a use, such as "encoder", to the name of the model."""
    llm = settings.llm if settings.llm.kind == "vllm" else None
    uses = {
        "encoder": settings.encoder.model,
        "encoder's adapter": settings.encoder.adapter,
        "llm": llm.model if llm else "",
        "llm's adapter": llm.adapter if llm else "",
        "concepts": settings.vocabulary.concepts,
        "recogniser": settings.recogniser.model,
        "recogniser's adapter": settings.recogniser.adapter,
        "reranker": settings.reranker.model,
        "reranker's adapter": settings.reranker.adapter,
        "reader": settings.reader.model,
        "reader's adapter": settings.reader.adapter,
        "support": settings.support.model,
        "support's adapter": settings.support.adapter,
    }
    lexicons = enumerate(settings.vocabulary.lexicons, start=1)
    uses |= {f"lexicon {number}": name for number, name in lexicons}
    uses |= {role: chosen.model for role, chosen in settings.models.roles().items()}
    return {use: name for use, name in uses.items() if name}
