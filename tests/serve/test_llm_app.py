from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ray.exceptions import RayActorError

from cluster.errors import LLMError
from cluster.settings.settings import load_settings
from serve import llm_app
from serve.llm_app import (
    HandleChatModel,
    llm_config,
    llm_dtype,
    llm_options,
    placement_bundles,
    read_arguments,
)
from tests.serve.local_handle import LocalHandle

pytestmark = pytest.mark.model

MESSAGES = [{"role": "user", "content": "What lowers glucose?"}]
REPLY = {"choices": [{"message": {"content": "Metformin."}, "finish_reason": "stop"}]}


class Model:
    """Model that returns or raises `outcome`; `None` lets calls wait forever."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.bodies: list[dict[str, Any]] = []

    async def chat(self, body: dict[str, Any]) -> Any:
        self.bodies.append(body)
        if self.outcome is None:
            await asyncio.Event().wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs a handle to a model with the given outcome."""

    def install(outcome: Any) -> LocalHandle:
        handle = LocalHandle(Model(outcome))
        monkeypatch.setattr(llm_app.ray_serve, "get_deployment_handle", lambda *_: handle)
        return handle

    return install


def chat(**options: Any) -> str:
    model = HandleChatModel("smollm2")
    return asyncio.run(model.chat(MESSAGES, max_tokens=8, temperature=0.0, **options))


def test_handle_model_sends_a_chat_request(answering: Any) -> None:
    handle = answering(REPLY)
    assert chat(choices=("yes", "no")) == "Metformin."
    [body] = handle.stage.bodies
    assert body["model"] == "smollm2"
    assert body["messages"] == MESSAGES
    assert body["structured_outputs"] == {"choice": ["yes", "no"]}


def test_failed_or_truncated_reply_raises_llm_error(answering: Any) -> None:
    # The engine's message may repeat the question, which must not be logged.
    message = "this prompt has 9,000 tokens: Does metformin activate AMPK?"
    answering({"error": {"message": message, "type": "BadRequestError", "code": 400}})
    with pytest.raises(LLMError, match=r"refused: BadRequestError, 400$"):
        chat()
    answering(RayActorError())
    with pytest.raises(LLMError, match="lost"):
        chat()
    answering({"choices": [{"message": {"content": '{"ans'}, "finish_reason": "length"}]})
    with pytest.raises(LLMError, match="cut off"):
        chat(json_schema={"type": "object"})


def test_cancelled_chat_cancels_the_request(answering: Any) -> None:
    handle = answering(None)

    async def cut_short() -> None:
        call = HandleChatModel("m").chat(MESSAGES, max_tokens=8, temperature=0.0)
        await asyncio.wait_for(call, 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(cut_short())
    assert [response.cancelled for response in handle.responses] == [True]


def test_tensor_parallel_model_has_one_bundle_per_gpu() -> None:
    settings = load_settings("cluster.yaml")
    bundles = placement_bundles(settings)
    assert len(bundles) == settings.llm.tensor_parallel > 1
    assert all(bundle["GPU"] == settings.serve.llm.gpus for bundle in bundles)
    assert all(bundle["accelerator_type:H100"] > 0 for bundle in bundles)
    assert llm_options(settings)["placement_group_bundles"] == bundles
    assert llm_config(settings, "/models/llama", "bfloat16")["accelerator_type"] == "H100"


# Nightly, because the import takes ten seconds, and only another release of Ray can change it.
@pytest.mark.nightly
def test_ray_places_one_worker_on_each_gpu() -> None:
    from ray.serve.llm import LLMConfig

    settings = load_settings(None, ["llm.tensor_parallel=2", "serve.llm.gpus=1"])
    config = LLMConfig(**llm_config(settings, "/models/llama", "bfloat16"))
    engine = config.get_engine_config()
    assert engine.tensor_parallel_degree == 2
    assert engine.placement_strategy == "STRICT_PACK"
    assert [bundle["GPU"] for bundle in engine.placement_bundles] == [1, 1]


def test_dtype_of_the_settings_has_precedence() -> None:
    settings = load_settings(None, ["llm.engine.dtype=float16"])
    assert llm_config(settings, "/m", "float32")["engine_kwargs"]["dtype"] == "float16"
    plain = llm_config(load_settings(), "/m", "float32")
    assert plain["engine_kwargs"]["dtype"] == "float32"
    # On GPUs, vLLM chooses the dtype.
    assert llm_dtype(load_settings("gpu-node.yaml")) == "auto"


def test_several_replicas_are_autoscaled() -> None:
    assert llm_options(load_settings())["num_replicas"] == 1
    level = "llm.environment.VLLM_LOGGING_LEVEL=INFO"
    many = load_settings(None, ["serve.llm.max_replicas=3", level])
    options = llm_options(many)
    scaling = options["autoscaling_config"]
    assert (scaling["min_replicas"], scaling["max_replicas"]) == (1, 3)
    assert scaling["target_ongoing_requests"] == many.llm.max_concurrent
    environment = options["ray_actor_options"]["runtime_env"]["env_vars"]
    assert environment["VLLM_LOGGING_LEVEL"] == "INFO"
    assert environment["VLLM_NO_USAGE_STATS"] == "1"


def test_workers_request_the_gpu_share_of_their_bundle() -> None:
    def environment(config: str) -> dict[str, str]:
        options = llm_options(load_settings(config))
        return options["ray_actor_options"]["runtime_env"]["env_vars"]

    shared = environment("gpu-node.yaml")
    assert shared["VLLM_RAY_PER_WORKER_GPUS"] == "0.6"
    assert shared["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert "VLLM_RAY_PER_WORKER_GPUS" not in environment("cluster.yaml")


def test_serve_run_arguments_are_settings() -> None:
    settings = read_arguments({"config": "gpu-node.yaml", "index.shards": "3"})
    assert (settings.index.shards, settings.serve.host) == (3, "0.0.0.0")
