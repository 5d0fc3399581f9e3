"""Settings of the vocabulary and of the recogniser, which find a question's entities."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cluster.settings.fields import ModelSettings, Positive, Strict

SemanticType = Annotated[str, Field(pattern=r"^T\d{3}$")]


class VocabularySettings(Strict):
    """Sources of the vocabulary.

    `concepts` is a release of MeSH or UMLS, or "" to use only concepts found in the corpus.
    `lexicons` are files with more names of these concepts (`cluster.text.read_lexicon`). From
    UMLS, the concepts of the semantic types `umls_types` are used in addition to those of MeSH.
    """

    concepts: str
    concepts_sha256: str = ""
    lexicons: tuple[str, ...] = ()
    umls_types: tuple[SemanticType, ...]
    abbreviation_min_citations: Positive


class RecogniserSettings(ModelSettings):
    """How entities are found: with the index's vocabulary, or with a token classifier.

    `labels` are the entity types of the classifier that are used; an empty list uses all.
    """

    kind: Literal["vocabulary", "transformer"]
    labels: tuple[str, ...] = ()
