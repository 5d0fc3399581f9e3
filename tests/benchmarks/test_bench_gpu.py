from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from benchmarks.bench_gpu import Shape
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


def test_flops_match_those_of_torch(tmp_path: Path) -> None:
    folder = make_tiny_encoder(tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(input_ids=torch.ones(1, 16, dtype=torch.long))
    assert Shape.of(folder).flops(16) == counted.get_total_flops()
