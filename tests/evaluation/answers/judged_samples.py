"""Samples for a scripted judge; expected measures are calculated by hand.

Tests call the judge directly unless they test the HTTP client: a client for each of twenty
requests costs seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.answers.judge_answers import JudgedRun, Sample, judge_samples
from evaluation.answers.judge_prompts import PROBE
from serve.llm.language_model import ChatModel, OpenAIChatModel

VECTORS = {
    "Does aspirin thin blood?": [1.0, 0.0],
    "same": [2.0, 0.0],
    "near": [0.6, 0.8],
    "other": [0.0, 3.0],
    "against": [-1.0, 0.0],
}
PROBE_CALLS = len(PROBE)


def encode(texts: Sequence[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def sample(id_: str = "1", **fields: Any) -> Sample:
    values: dict[str, Any] = {
        "question": "Does aspirin thin blood?",
        "answer": "A is true. B is false. C is true.",
        "contexts": ("useful one", "idle", "useful two"),
        "reference": "D is true. E is false. F is false. G is true.",
    }
    return Sample(id_, **{**values, **fields})


def over_http(url: str) -> OpenAIChatModel:
    return OpenAIChatModel(url, "judge", timeout_s=10, backoff_s=0.01)


def run(model: ChatModel, *samples: Sample, **options: Any) -> JudgedRun:
    return asyncio.run(judge_samples(samples, model, encode, **options))


def values(model: ChatModel, *samples: Sample) -> dict[str, float]:
    return run(model, *samples).scores.by_question()[samples[0].id]
