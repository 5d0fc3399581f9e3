"""BLEU and BERTScore of answers against references, as in the error analysis of paper 000.

BLEU (Papineni et al. 2002) is computed by sacrebleu. BERTScore (Zhang et al. 2020) is computed by
bert-score, without rescaling, with a model in a local folder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from cluster.errors import InputError
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from evaluation.scores import Scores, mean, tabulate

BATCH_SIZE = 32  # in texts
BERT_COLUMNS = ("BERTScore precision", "BERTScore recall", "BERTScore F1")

Triple = tuple[float, float, float]

# Without effective order, a text of fewer than four words scores 0 even if it is identical.
_SENTENCE = BLEU(effective_order=True)


def bleu(said: str, references: Sequence[str]) -> float:
    """Return the sentence BLEU of one text against all `references` at once, 0 to 100.

    Tokenisation is mteval-v13a, with exponential smoothing and orders up to the text's length.
    Raises InputError if there is no reference.
    """
    _check(references, f"text {said[:40]!r}")
    # Rounding errors can push a perfect score above 100.
    return min(_SENTENCE.sentence_score(said, references).score, 100.0)


class BertScorer:
    """BERTScore with the model in `model_dir`, a folder in the transformers layout.

    Nothing is downloaded and no code in the folder is run. Raises InputError for a folder that
    cannot be loaded.
    """

    def __init__(self, model_dir: Path) -> None:
        from cluster.models.hardware import choose_device

        self._tokenizer, self._model = _load(model_dir)
        self._device = choose_device("auto")
        self._model.to(self._device).eval()

    def score(self, said: Sequence[str], references: Sequence[Sequence[str]]) -> list[Triple]:
        """Return (precision, recall, F1) of each text against the reference with the highest F1.

        The values are cosines, from -1 to 1. An empty text or reference scores 0. Raises InputError
        if a text has no reference.
        """
        pairs = []
        for place, (text, own) in enumerate(zip(said, references, strict=True)):
            _check(own, f"text {place}")
            pairs += [(place, text, one) for one in own if text.strip() and one.strip()]
        best: dict[int, Triple] = {}
        for (place, _, _), triple in zip(pairs, self._cosines(pairs), strict=True):
            if place not in best or triple[2] > best[place][2]:
                best[place] = triple
        return [best.get(place, (0.0, 0.0, 0.0)) for place in range(len(said))]

    def _cosines(self, pairs: Sequence[tuple[int, str, str]]) -> list[Triple]:
        if not pairs:
            return []
        from bert_score.utils import bert_cos_score_idf

        # No IDF weighting: every token has weight 1, and the start and end tokens have weight 0.
        weights: defaultdict[int, float] = defaultdict(lambda: 1.0)
        weights[self._tokenizer.sep_token_id] = 0
        weights[self._tokenizer.cls_token_id] = 0
        found = bert_cos_score_idf(
            self._model,
            [reference for _, _, reference in pairs],
            [text for _, text, _ in pairs],
            self._tokenizer,
            weights,
            batch_size=BATCH_SIZE,
            device=self._device,
        )
        return [(precision, recall, f1) for precision, recall, f1 in found.tolist()]


def score_texts(
    said: Mapping[str, str],
    references: Mapping[str, Sequence[str]],
    scorer: BertScorer | None = None,
    *,
    prefix: str = "",
) -> Scores:
    """Score texts by question id: mean sentence BLEU and, with a scorer, BERTScore.

    The questions are those of `references`; a question without a text is missing and excluded from
    all means. `prefix` starts the name of every column and measure. Raises InputError for a text
    whose question has no reference.
    """
    for id_ in said:
        _check(references.get(id_, ()), f"question {id_!r}")
    ids = [id_ for id_ in references if id_ in said]
    found = {id_: {"BLEU": bleu(said[id_], references[id_])} for id_ in ids}
    columns = ["BLEU"]
    if scorer is not None:
        triples = scorer.score([said[id_] for id_ in ids], [references[id_] for id_ in ids])
        for id_, triple in zip(ids, triples, strict=True):
            found[id_].update(zip(BERT_COLUMNS, triple, strict=True))
        columns += BERT_COLUMNS
    names = [f"{prefix}{column}" for column in columns]
    named = {id_: {f"{prefix}{n}": value for n, value in row.items()} for id_, row in found.items()}
    missing = [id_ for id_ in references if id_ not in said]
    return tabulate(named, names, list(map(mean, names)), missing)


def _check(references: Sequence[str], where: str) -> None:
    if isinstance(references, str) or not references:
        raise InputError(f"{where}: it has no list of references; give at least one")


def _load(model_dir: Path) -> tuple[Any, Any]:
    # bert-score's own loader treats every path that contains "t5" as a T5 model.
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from cluster.models.adapters import quiet_loading

    if not (model_dir / "config.json").is_file():
        raise InputError(
            f"{model_dir} is not a model's folder (it has no config.json): "
            "name a model in the transformers layout"
        )
    weights = {**SAFE_WEIGHTS, "output_loading_info": True}
    try:
        with quiet_loading():
            config = AutoConfig.from_pretrained(model_dir, **SAFELY)
            tokenizer = AutoTokenizer.from_pretrained(model_dir, **SAFELY)
            model, loaded = AutoModel.from_pretrained(model_dir, config=config, **weights)
    except LOAD_ERRORS as error:
        raise unloadable(model_dir, "a language model", error) from error
    # The pooler, which reduces a text to one vector, is not used.
    if missing := sorted(key for key in loaded["missing_keys"] if not key.startswith("pooler.")):
        raise InputError(
            f"{model_dir} lacks weights of a {config.model_type} model ({missing[0]} and "
            f"{len(missing) - 1} more): fetch it again, or name another model"
        )
    positions = int(getattr(config, "max_position_embeddings", 512))
    if tokenizer.model_max_length > positions:
        # The folder sets no limit. RoBERTa reserves two of its positions.
        tokenizer.model_max_length = positions - 2
    return tokenizer, model
