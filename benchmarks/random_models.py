"""Models with random weights, which are as fast as trained models of the same shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import AutoConfig, AutoModel, AutoModelForTokenClassification, AutoTokenizer

from benchmarks.gpu_pack import Pack
from cluster.index.tokens.codec import learn_codec
from cluster.models.hardware import choose_dtype
from cluster.models.load_safely import SAFELY
from cluster.models.reader import Reader
from cluster.models.sources.model_name import SHIPPED

READER_TOKENS = 384


@dataclass(frozen=True)
class Shape:
    """Dimensions of an encoder that determine its speed."""

    layers: int
    hidden: int
    inner: int


def random_encoder(like: Path, shape: Shape, folder: Path) -> Path:
    """Write an encoder of `shape` to `folder`, with the architecture and tokeniser of `like`."""
    config: Any = AutoConfig.from_pretrained(str(like), **SAFELY)
    config.num_hidden_layers, config.hidden_size = shape.layers, shape.hidden
    config.intermediate_size, config.num_attention_heads = shape.inner, max(shape.hidden // 64, 1)
    AutoModel.from_config(config).bfloat16().save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(str(like), **SAFELY).save_pretrained(folder / "model")
    modules = [Transformer(str(folder / "model")), Pooling(shape.hidden)]
    encoder = SentenceTransformer(modules=modules, device="cpu")
    encoder.save(str(folder / "encoder"), create_model_card=False)
    return folder / "encoder"


def base_pack(pack: Pack, shape: Shape, folder: Path) -> Pack:
    """Return `pack` with an encoder of `shape` with random weights, and with a random codec."""
    encoder = random_encoder(pack.encoder, shape, folder)
    tokens = np.random.default_rng(0).standard_normal((1000, shape.hidden), np.float32)
    codec = learn_codec(tokens, len(pack.codec.components), pack.codec.bits)
    return replace(pack, encoder=encoder, codec=codec)


def random_reader(tokeniser: Path, layers: int, batch_size: int, device: str) -> Reader:
    """Return a reader with the shape of the shipped one, except for its number of layers.

    `tokeniser` is a folder with a tokeniser of BERT's vocabulary, which MPNet shares.
    """
    config: Any = AutoConfig.from_pretrained(str(SHIPPED / "reader"), **SAFELY)
    config.num_hidden_layers = layers
    tokenizer: Any = AutoTokenizer.from_pretrained(str(tokeniser), **SAFELY)
    # MPNet has no token types.
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    with torch.device(device):
        model = AutoModelForTokenClassification.from_config(config)
    model = model.to(choose_dtype("auto", device))
    return Reader(model, tokenizer, max_tokens=READER_TOKENS, batch_size=batch_size)
