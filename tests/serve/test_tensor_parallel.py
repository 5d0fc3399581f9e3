"""The settings of a model spread over several GPUs, held to Ray's own schema."""

from __future__ import annotations

import pytest

from cluster.settings.settings import load_settings
from serve.llm_app import llm_config

pytestmark = pytest.mark.ray


def test_ray_places_one_worker_on_each_gpu_of_one_node() -> None:
    # Slow to import, and every process of the tests collects this module.
    from ray.serve.llm import LLMConfig

    settings = load_settings(None, ["llm.tensor_parallel=2", "serve.llm.gpus=1"])
    config = LLMConfig(**llm_config(settings, "/models/llama", "bfloat16"))
    engine = config.get_engine_config()
    assert engine.tensor_parallel_degree == 2
    assert engine.placement_strategy == "STRICT_PACK"
    assert [bundle["GPU"] for bundle in engine.placement_bundles] == [1, 1]
