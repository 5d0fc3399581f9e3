"""Recipes: all that decides how a model is trained, as data in configs/training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

import yaml
from pydantic import Field, ValidationError, ValidationInfo, field_validator

from cluster.errors import InputError, cut
from cluster.settings.parse_yaml import parse_yaml
from cluster.settings.read_config import CONFIGS
from cluster.settings.settings import Positive, Share, Strict

Amount = Annotated[float, Field(ge=0)]


class Recipe(Strict):
    """`steps` of `batch` examples with AdamW.

    The learning rate climbs over the first `warmup` share of the steps and then falls to 0 in a
    straight line; `head_learning_rate` is that of a new head, which starts from noise.
    `clip` is the largest norm of a gradient. `rank` and `alpha` are the adapter's (LoRA, Hu et
    al. 2021, section 4.1), put on the layers whose names match the regular expression `targets`;
    with rank 0 every weight is trained, and the result is a whole model. `mixing` is the share of
    the adapter's change that is kept at the end: less than all of it forgets less of what the model
    could do before, and is often better on questions unlike those learned from (Wortsman et al.
    2022, "Robust fine-tuning of zero-shot models", section 3). `dropout` is that of
    the model and of its adapter: on a CPU drawing it takes a third of a step's time.
    Texts are cut at `max_tokens`. A checkpoint is written, and the model measured, every so
    many steps; 0 leaves out the measuring before the end.
    """

    seed: int
    steps: Positive
    batch: Positive
    learning_rate: Annotated[float, Field(gt=0)]
    head_learning_rate: Annotated[float, Field(gt=0)]
    warmup: Share
    weight_decay: Amount
    clip: Annotated[float, Field(gt=0)]
    rank: Annotated[int, Field(ge=0)]
    alpha: Positive
    mixing: Annotated[float, Field(gt=0, le=1)]
    dropout: Annotated[float, Field(ge=0, lt=1)]
    targets: str
    max_tokens: Positive
    checkpoint_every: Positive
    measure_every: Annotated[int, Field(ge=0)]

    @field_validator("mixing")
    @classmethod
    def _mixes_an_adapter(cls, mixing: float, info: ValidationInfo) -> float:
        if mixing < 1 and info.data.get("rank") == 0:
            raise ValueError("rank 0 makes no adapter of which a share could be kept: set it to 1")
        return mixing


class RetrievalRecipe(Recipe):
    """For questions and passages.

    A question gives at most `positives` pairs, each with `negatives` hard ones drawn from those
    of the best `hardest` of BM25 and of the untrained encoder that are not gold. The losses are
    softmax cross-entropies of cosines times `dense_scale`, and of mean MaxSim times
    `maxsim_scale`; a scale of 0 leaves one out.
    """

    query_tokens: Positive
    positives: Positive
    negatives: Positive
    hardest: Positive
    dense_scale: Amount
    maxsim_scale: Amount


class ClaimRecipe(Recipe):
    """For claims: the share `held_out` of the claims is measured on and not trained on."""

    held_out: Share


class CrossEncoderRecipe(Recipe):
    """For the cross-encoder: `negatives` random citations for each document that is relevant.

    Adapting to questions takes `adapt_steps` in place of `steps`. A pseudo-document to which a
    discriminator gives a probability of relevance below `least_relevance` is left out.
    """

    negatives: Positive
    adapt_steps: Positive
    least_relevance: Share

    @field_validator("rank")
    @classmethod
    def _trains_every_weight(cls, rank: int) -> int:
        if rank:
            raise ValueError("a cross-encoder is trained whole: leave it at 0")
        return rank


class ReaderRecipe(Recipe):
    """For the reader: of questions with gold answers, and made from tables so many `propositions`
    and `attributes`.

    A question gives at most `positives` snippets and half as many windows of its gold citations,
    and `negatives` drawn from those of the best `hardest` of BM25 and of the untrained encoder
    that are not gold. A share `embedded` of the snippets stands among other sentences, and a
    share `flipped` of its yes/no snippets comes again, turned round. The losses of stance and
    names count `stance_weight` and `names_weight` times those of relevance and of sentences.
    """

    positives: Positive
    negatives: Positive
    hardest: Positive
    flipped: Share
    embedded: Share
    propositions: Annotated[int, Field(ge=0)]
    attributes: Annotated[int, Field(ge=0)]
    stance_weight: Amount
    names_weight: Amount


AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


def read_recipe(kind: type[AnyRecipe], name: str, changes: Sequence[str] = ()) -> AnyRecipe:
    """The recipe configs/training/`name`.yaml with `changes`, each `key=value`, laid over it.

    Raises InputError for a change that is no key of the recipe or has no good value.
    """
    values = yaml.safe_load((CONFIGS / "training" / f"{name}.yaml").read_text(encoding="utf-8"))
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or key not in kind.model_fields:
            raise InputError(
                f"--with {cut(change)}: write it as KEY=VALUE with one of the keys "
                f"{', '.join(kind.model_fields)}"
            )
        values[key] = parse_yaml(value, f"--with {cut(change)}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        given = cut(repr(first.get("input")))
        raise InputError(
            f"recipe {name}: {first['loc'][0]}: {first['msg']} (got {given})"
        ) from error
