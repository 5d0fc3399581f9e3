"""BLEU and BERTScore of answers against references, as in the error analysis of paper 000.

BLEU (Papineni et al. 2002) is computed by sacrebleu. BERTScore (Zhang et al. 2020) is computed by
bert-score, without rescaling, with a model in a local folder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU, BLEUScore

from cluster.errors import InputError
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from evaluation.scores import Drawn, Measure, Scores, Values, mean, tabulate

CORPUS = "BLEU, corpus"
BERT_COLUMNS = ("BERTScore precision", "BERTScore recall", "BERTScore F1")

Triple = tuple[float, float, float]

_ORDERS = range(1, 5)
_MATCHED = [f"{n}-grams matched" for n in _ORDERS]
_SAID = [f"{n}-grams" for n in _ORDERS]
_LENGTHS = ["words", "words of the reference"]
_BLEU_COLUMNS = ["BLEU", *_MATCHED, *_SAID, *_LENGTHS]

# Without effective order, a text of fewer than four words scores 0 even if it is identical.
_SENTENCE = BLEU(effective_order=True)


def bleu(said: str, references: Sequence[str]) -> float:
    """Return the sentence BLEU of one text against all `references` at once, 0 to 100.

    Tokenisation is mteval-v13a, with exponential smoothing and orders up to the text's length.
    Raises InputError if there is no reference.
    """
    # Rounding errors can push a perfect score above 100.
    return min(_sentence(said, references).score, 100.0)


class BertScorer:
    """BERTScore with the model in `model_dir`, a folder in the transformers layout.

    `layers` is the number of the model's layers to run, all by default (bert-score's own table
    lists the layer that agrees best with people for the models it knows). `batch_size` is in texts.
    Nothing is downloaded and no code in the folder is run. Raises InputError for a folder that
    cannot be loaded, and for a number of layers that the model does not have.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        layers: int | None = None,
        device: str = "auto",
        batch_size: int = 32,
    ) -> None:
        from cluster.models.hardware import choose_device

        self._tokenizer, self._model = _load(model_dir, layers)
        self._device = choose_device(device)
        self._model.to(self._device).eval()
        self._batch_size = batch_size

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
            batch_size=self._batch_size,
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
    """Score texts by question id: mean sentence BLEU, corpus BLEU and, with a scorer, BERTScore.

    The questions are those of `references`; a question without a text is missing and excluded from
    all means. `prefix` starts the name of every column and measure. Raises InputError for a text
    whose question has no reference.
    """
    for id_ in said:
        _check(references.get(id_, ()), f"question {id_!r}")
    ids = [id_ for id_ in references if id_ in said]
    found = {id_: _bleu_columns(said[id_], references[id_]) for id_ in ids}
    corpus = Measure(f"{prefix}{CORPUS}", partial(_corpus_of_sums, prefix))
    columns, measures = list(_BLEU_COLUMNS), [mean(f"{prefix}BLEU"), corpus]
    if scorer is not None:
        triples = scorer.score([said[id_] for id_ in ids], [references[id_] for id_ in ids])
        for id_, triple in zip(ids, triples, strict=True):
            found[id_].update(zip(BERT_COLUMNS, triple, strict=True))
        columns += BERT_COLUMNS
        measures += [mean(f"{prefix}{name}") for name in BERT_COLUMNS]
    named = {id_: {f"{prefix}{n}": value for n, value in row.items()} for id_, row in found.items()}
    missing = [id_ for id_ in references if id_ not in said]
    return tabulate(named, [f"{prefix}{name}" for name in columns], measures, missing)


def _bleu_columns(said: str, references: Sequence[str]) -> dict[str, float]:
    score = _sentence(said, references)
    values = [min(score.score, 100.0), *score.counts, *score.totals, score.sys_len, score.ref_len]
    return dict(zip(_BLEU_COLUMNS, values, strict=True))


def _corpus_of_sums(prefix: str, drawn: Drawn) -> Values:
    """Return corpus BLEU from the summed counts of the sentences; NaN without a sentence."""
    sums = np.stack([drawn.sum(f"{prefix}{column}") for column in _BLEU_COLUMNS[1:]], axis=1)
    scores = np.array([_corpus(row) for row in sums.astype(int).tolist()])
    return np.where(drawn.questions(f"{prefix}BLEU") > 0, scores, np.nan)


def _corpus(counts: list[int]) -> float:
    matched, said, (length, wanted) = counts[:4], counts[4:8], counts[8:]
    score = BLEU.compute_bleu(matched, said, length, wanted, smooth_method="exp").score
    return float(min(score, 100.0))


def _sentence(said: str, references: Sequence[str]) -> BLEUScore:
    _check(references, f"text {said[:40]!r}")
    return _SENTENCE.sentence_score(said, references)


def _check(references: Sequence[str], place: str) -> None:
    if isinstance(references, str) or not references:
        raise InputError(f"{place}: it has no list of references; give at least one")


def _load(model_dir: Path, layers: int | None) -> tuple[Any, Any]:
    # bert-score's own loader treats every path that contains "t5" as a T5 model.
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging

    if not (model_dir / "config.json").is_file():
        raise InputError(
            f"{model_dir} is not a model's folder (it has no config.json): "
            "name a model in the transformers layout"
        )
    weights = {**SAFE_WEIGHTS, "output_loading_info": True}
    logging.disable_progress_bar()
    level = logging.get_verbosity()
    # Suppress a warning for each layer that `layers` leaves out.
    logging.set_verbosity_error()
    try:
        config = AutoConfig.from_pretrained(model_dir, **SAFELY)
        _limit_layers(config, layers, model_dir)
        tokenizer = AutoTokenizer.from_pretrained(model_dir, **SAFELY)
        model, loaded = AutoModel.from_pretrained(model_dir, config=config, **weights)
    except LOAD_ERRORS as error:
        raise unloadable(model_dir, "a language model", error) from error
    finally:
        logging.set_verbosity(level)
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


def _limit_layers(config: Any, layers: int | None, model_dir: Path) -> None:
    if layers is None:
        return
    if not 1 <= layers <= config.num_hidden_layers:
        raise InputError(
            f"layers is {layers}, and {model_dir.name} has {config.num_hidden_layers}: "
            f"set it from 1 to {config.num_hidden_layers}"
        )
    config.num_hidden_layers = layers
