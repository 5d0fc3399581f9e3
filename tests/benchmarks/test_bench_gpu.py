from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel

from benchmarks.bench_gpu import Shape, main, sheet_tflops
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


def test_flops_are_those_of_bert_base_by_hand() -> None:
    # 85.05M weights in products, 2 FLOPs each for a token; and 2 products of 128 x 128 x 768.
    weights = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
    attention = 12 * 2 * 2 * 128 * 128 * 768
    assert Shape(12, 768, 3072).flops(128) == 128 * 2 * weights + attention


def test_flops_are_those_that_torch_counts(tmp_path: Path) -> None:
    folder = make_tiny_encoder(tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(input_ids=torch.ones(1, 16, dtype=torch.long))
    assert Shape.of(folder).flops(16) == counted.get_total_flops()


def test_a_card_is_known_by_its_full_name() -> None:
    assert sheet_tflops("NVIDIA H100 80GB HBM3") == 989.4
    assert sheet_tflops("NVIDIA H100 PCIe") == 756.0
    assert sheet_tflops("NVIDIA L40S") == 362.0
    assert sheet_tflops("cpu") is None


def test_the_arithmetic_runs_on_a_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_tiny_encoder(tmp_path)
    settings = [f"encoder.model=file:{model}", "encoder.max_tokens=64", "index.vectors=sq8"]
    command = ["--device", "cpu", "--passages", "8", "--vectors", "3000", "--matrix", "64"]
    overrides = [part for setting in settings for part in ("--set", setting)]
    # The tiny model has positions for 64 tokens.
    monkeypatch.setattr("benchmarks.bench_gpu.PASSAGE_TOKENS", 64)
    assert main([*command, *overrides]) == 0
    said = capsys.readouterr().out
    assert re.search(r"encoder on cpu: [\d,]+ passages of 64 tokens a second", said)
    assert float(re.findall(r"recall@10 ([\d.]+)", said)[0]) > 0.8
    assert "CAGRA: not run" in said
