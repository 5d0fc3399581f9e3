"""Training recipes: all parameters of a training run, as files in configs/training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

import yaml
from pydantic import Field, ValidationError, ValidationInfo, field_validator

from cluster.errors import InputError, cut
from cluster.problem_words import problem_words
from cluster.settings.fields import Positive, Share, Strict
from cluster.settings.parse_yaml import parse_yaml
from cluster.settings.read_config import CONFIGS

Amount = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class TrainerRecipe(Strict):
    """Parameters that all trainings share.

    The learning rate rises over the first `warmup` share of the steps and then falls linearly to
    0. `clip` is the maximum norm of a gradient, `rank` the rank of the adapter (LoRA, Hu et al.
    2021, section 4.1). Texts are cut at `max_tokens`. A checkpoint is written every
    `checkpoint_every` steps.
    """

    seed: int
    max_tokens: Positive
    warmup: Share
    weight_decay: Amount
    clip: Annotated[float, Field(gt=0)]
    rank: Annotated[int, Field(ge=0)]
    checkpoint_every: Positive


class AdapterRecipe(TrainerRecipe):
    """Training of an adapter that is added to the layers whose names match the pattern `targets`.

    `alpha` scales the adapter. `dropout` applies to the model and to its adapter; on a CPU it makes
    a step much slower.
    """

    learning_rate: Annotated[float, Field(gt=0)]
    alpha: Positive
    targets: str
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Recipe(AdapterRecipe):
    """Training of a small model: `steps` steps of `batch` examples.

    `head_learning_rate` is that of a new head, which is initialised at random. With rank 0 every
    weight is trained, and the result is a whole model. `mixing` is the share of the adapter's
    change that is kept at the end: a share below 1 forgets less of what the model could do before,
    and is often better on questions unlike the training data (Wortsman et al. 2022, "Robust
    fine-tuning of zero-shot models", section 3). The model is measured every `measure_every`
    steps; 0 measures only at the end.
    """

    steps: Positive
    batch: Positive
    head_learning_rate: Annotated[float, Field(gt=0)]
    mixing: Annotated[float, Field(gt=0, le=1)]
    measure_every: Annotated[int, Field(ge=0)]

    @field_validator("mixing")
    @classmethod
    def _mixes_an_adapter(cls, mixing: float, info: ValidationInfo) -> float:
        if mixing < 1 and info.data.get("rank") == 0:
            raise ValueError("mixing has no effect with rank 0: set it to 1")
        return mixing


class RetrievalRecipe(Recipe):
    """Recipe for a retrieval encoder, trained on questions and passages.

    A question gives at most `positives` pairs, each with `negatives` hard negatives. These are
    drawn from the best `hardest` of BM25 and of the untrained encoder that are not gold. The losses
    are softmax cross-entropies of cosines times `dense_scale`, and of mean MaxSim times
    `maxsim_scale`; a scale of 0 disables a loss.
    """

    query_tokens: Positive
    positives: Positive
    negatives: Positive
    hardest: Positive
    dense_scale: Amount
    maxsim_scale: Amount


class ReaderLosses(Strict):
    """Weights of the reader's losses."""

    relevance: Amount
    stance: Amount
    sentences: Amount
    names: Amount


class ReaderPass(Strict):
    """One pass of the reader's training: the number of examples of each kind and their losses.

    `yesno` examples are from BioASQ's yes/no questions, `other` from its other questions,
    `abstracts` from questions on whole abstracts, `trials` from findings of trials, `propositions`
    and `attributes` from tables with slots, and `claims`, `abstract_claims` and `mentions` from
    contrast sets without slots; the questions of `nonsense` are random words, and `hard_negatives`
    pair a question with a text of another one. `articles` and `background` are yes/no questions
    that were written for abstracts in `--abstracts`, `wordings` yes/no questions and `named`
    questions for names for citations of the corpus. If a source has fewer, more are made from the
    same data with other wordings or texts. The learning rate rises over the first `warmup` share of
    the steps and then falls to 0. The lowest `frozen_layers` layers of the encoder are not trained.
    If `balanced`, each kind has as many questions answered yes as no.
    """

    learning_rate: Annotated[float, Field(gt=0)]
    yesno: Count = 0
    other: Count = 0
    abstracts: Count = 0
    trials: Count = 0
    propositions: Count = 0
    attributes: Count = 0
    claims: Count = 0
    abstract_claims: Count = 0
    mentions: Count = 0
    nonsense: Count = 0
    hard_negatives: Count = 0
    articles: Count = 0
    background: Count = 0
    wordings: Count = 0
    named: Count = 0
    frozen_layers: Count = 0
    balanced: bool = False
    losses: ReaderLosses


class ReaderRecipe(TrainerRecipe):
    """Recipe for the reader: successive passes over different mixtures of examples.

    Batches have about `tokens` tokens. The learning rate of the new head is `head_rate` times that
    of the encoder. Citations that do not answer are drawn from the best `hardest` of BM25. The
    result is the mean of the weights after each of the last `averaged` passes (Wortsman et al.
    2022, "Model soups", section 3.1).

    Without `targets`, the matrices of the encoder are trained, and the adapter approximates their
    change. With it, an adapter of the layers whose names match this pattern is trained instead.
    It can be smaller if only little is to change.
    """

    rank: Positive
    tokens: Positive
    head_rate: Annotated[float, Field(gt=0)]
    hardest: Positive
    averaged: Positive = 1
    targets: str = ""
    passes: Annotated[tuple[ReaderPass, ...], Field(min_length=1)]

    @field_validator("targets")
    @classmethod
    def _averages_no_adapter(cls, targets: str, info: ValidationInfo) -> str:
        if targets and info.data.get("averaged") != 1:
            raise ValueError("an adapter cannot be averaged over passes: set averaged to 1")
        return targets


class WriterRecipe(AdapterRecipe):
    """Recipe for the writer, trained on gold answers of at most `max_words` words.

    Batches have about `tokens` tokens. At least the share `least_covered` of an answer's words of
    four letters or more must be in the evidence, of which a prompt has at most
    `evidence_characters`.
    """

    rank: Positive
    tokens: Positive
    epochs: Positive
    max_words: Positive
    least_covered: Share
    evidence_characters: Positive


class NamerRecipe(AdapterRecipe):
    """Recipe for the namer, trained on gold names of at most `max_characters` characters.

    Batches have about `tokens` tokens. A prompt has the sentence with the name, up to `others`
    other sentences of the question's snippets, and with probability `foreign` one of another
    question.
    """

    rank: Positive
    tokens: Positive
    epochs: Positive
    max_characters: Positive
    others: Positive
    foreign: Share


AnyRecipe = TypeVar("AnyRecipe", bound=Strict)


def read_recipe(kind: type[AnyRecipe], name: str, changes: Sequence[str] = ()) -> AnyRecipe:
    """Read configs/training/`name`.yaml and apply `changes`, each of the form `key=value`.

    Raises InputError for an unknown key or an invalid value.
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
            f"recipe {name}: {first['loc'][0]}: {problem_words(first)} (got {given})"
        ) from error
