"""Tiny random models with a real tokeniser, which load like large models but quickly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.models.readings import LABELS

if TYPE_CHECKING:
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertForTokenClassification,
        BertModel,
        BertTokenizerFast,
    )

MAX_TOKENS = 64
WIDTH = 32
# Rows of a vocabulary with which a model is large enough for its conversion to be cached.
CACHED_ROWS = 80_000
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = (
    "a an and aspirin blood bleeding causes cell does drug fever gene heart in inhibits is not of "
    "patients protein reduces risk study the treats tumour what which with . , ? ( ) - :"
)


def make_tiny_encoder(path: Path, seed: int = 0, rows: int | None = None) -> Path:
    """Write a 2-layer, 32-wide BERT with mean pooling, in the sentence-transformers layout.

    `rows` is the number of rows of its vocabulary; those beyond its tokens are unused.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertModel

    base = path / "base"
    _save(BertModel(_config(seed)), base, rows)
    model = Transformer(str(base), max_seq_length=MAX_TOKENS)
    SentenceTransformer(modules=[model, Pooling(WIDTH), Normalize()], device="cpu").save(
        str(path / "encoder"), create_model_card=False
    )
    return path / "encoder"


def make_tiny_cross_encoder(path: Path, seed: int = 0, labels: int = 1) -> Path:
    """Write the same BERT with a classification head, in the transformers layout."""
    from transformers import BertForSequenceClassification

    _save(BertForSequenceClassification(_config(seed, num_labels=labels)), path / "cross-encoder")
    return path / "cross-encoder"


def make_tiny_reader(path: Path, labels: Sequence[str] = LABELS, rows: int | None = None) -> Path:
    """Save the same BERT with the reader's head in `path`/reader, unless it is there."""
    from transformers import BertForTokenClassification

    if not (path / "reader").exists():
        config = _config(seed=0)
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
        _save(BertForTokenClassification(config), path / "reader", rows)
    return path / "reader"


def make_tiny_tagger(path: Path, words: list[str]) -> Path:
    """Write a tiny BERT with the vocabulary `words` that labels every token as a disease."""
    import torch
    from transformers import BertConfig, BertForTokenClassification, BertTokenizerFast

    tokens = [*SPECIAL, *words]
    tokenizer = BertTokenizerFast(vocab={token: position for position, token in enumerate(tokens)})
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label={0: "O", 1: "B-Disease", 2: "I-Disease"},
        label2id={"O": 0, "B-Disease": 1, "I-Disease": 2},
    )
    model = BertForTokenClassification(config)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([0.0, 20.0, 0.0]))
    tokenizer.save_pretrained(path / "model")
    model.save_pretrained(path / "model")
    return path / "model"


def _config(seed: int, num_labels: int = 2) -> BertConfig:
    import torch
    from transformers import BertConfig

    torch.manual_seed(seed)
    return BertConfig(
        vocab_size=len(_vocabulary()),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.5,
        # No dropout, because its noise would keep so small a random model from learning.
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=num_labels,
    )


def _vocabulary() -> list[str]:
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + [str(d) for d in range(10)]
    words = [*WORDS.split(), *letters]
    return [*SPECIAL, *dict.fromkeys(words), *(f"##{letter}" for letter in letters)]


def _save(
    model: BertModel | BertForSequenceClassification | BertForTokenClassification,
    path: Path,
    rows: int | None = None,
) -> None:
    path.mkdir(parents=True)
    tiny_tokenizer().save_pretrained(path)
    if rows is not None:
        model.resize_token_embeddings(rows, mean_resizing=False)
    model.eval().save_pretrained(path)


def tiny_tokenizer() -> BertTokenizerFast:
    from transformers import BertTokenizerFast

    vocabulary = {word: position for position, word in enumerate(_vocabulary())}
    return BertTokenizerFast(vocab=vocabulary, model_max_length=MAX_TOKENS)
