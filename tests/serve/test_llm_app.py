from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ray.exceptions import RayActorError

from cluster.errors import LLMError
from cluster.settings.settings import load_settings
from serve import llm_app
from serve.graph.load_stages import llm_dtype
from serve.llm_app import (
    HandleChatModel,
    llm_config,
    llm_options,
    placement_bundles,
    read_arguments,
)

pytestmark = pytest.mark.ray

MESSAGES = [{"role": "user", "content": "What lowers glucose?"}]
REPLY = {"choices": [{"message": {"content": "Metformin."}, "finish_reason": "stop"}]}


class Response:
    def __init__(self, outcome: Any) -> None:
        self.outcome, self.cancelled = outcome, False

    def __await__(self) -> Any:
        async def wait() -> Any:
            if isinstance(self.outcome, Exception):
                raise self.outcome
            if self.outcome == "never":
                await asyncio.sleep(60)
            return self.outcome

        return wait().__await__()

    def cancel(self) -> None:
        self.cancelled = True


class Handle:
    def __init__(self, outcome: Any) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.response = Response(outcome)
        self.chat = self

    def remote(self, body: dict[str, Any]) -> Response:
        self.bodies.append(body)
        return self.response


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the looked-up handle give one outcome."""

    def install(outcome: Any) -> Handle:
        handle = Handle(outcome)
        monkeypatch.setattr(llm_app.ray_serve, "get_deployment_handle", lambda *_: handle)
        return handle

    return install


def chat(**options: Any) -> str:
    model = HandleChatModel("smollm2")
    return asyncio.run(model.chat(MESSAGES, max_tokens=8, temperature=0.0, **options))


def test_the_model_is_asked_in_a_plain_chat_body_and_its_text_comes_back(answering: Any) -> None:
    handle = answering(REPLY)
    assert chat(choices=("yes", "no")) == "Metformin."
    [body] = handle.bodies
    assert body["model"] == "smollm2"
    assert body["messages"] == MESSAGES
    assert body["structured_outputs"] == {"choice": ["yes", "no"]}


def test_a_refusal_a_loss_or_a_reply_cut_off_is_an_llm_error(answering: Any) -> None:
    # The engine's words may repeat the question, which no log is to have.
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


def test_a_cancelled_question_cancels_the_request_downstream(answering: Any) -> None:
    handle = answering("never")

    async def cut_short() -> None:
        call = HandleChatModel("m").chat(MESSAGES, max_tokens=8, temperature=0.0)
        await asyncio.wait_for(call, 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(cut_short())
    assert handle.response.cancelled


def test_a_tensor_parallel_model_gets_one_gpu_bundle_for_each_part() -> None:
    settings = load_settings("cluster.yaml")
    bundles = placement_bundles(settings)
    assert len(bundles) == settings.llm.tensor_parallel > 1
    assert all(bundle["GPU"] == settings.serve.llm.gpus for bundle in bundles)
    assert all(bundle["accelerator_type:H100"] > 0 for bundle in bundles)
    assert llm_options(settings)["placement_group_bundles"] == bundles
    config = llm_config(settings, "/models/llama", "bfloat16")
    assert config["placement_group_config"]["bundles"] == bundles
    assert config["engine_kwargs"]["tensor_parallel_size"] == len(bundles)
    assert config["accelerator_type"] == "H100"


def test_a_dtype_of_the_settings_goes_before_the_machines() -> None:
    settings = load_settings(None, ["llm.engine.dtype=float16"])
    assert llm_config(settings, "/m", "float32")["engine_kwargs"]["dtype"] == "float16"
    plain = llm_config(load_settings(), "/m", "float32")
    assert plain["engine_kwargs"]["dtype"] == "float32"
    # On GPUs it is left to vLLM.
    assert llm_dtype(load_settings("gpu-node.yaml")) == "auto"


def test_more_replicas_than_one_are_autoscaled_and_have_the_settings_environment() -> None:
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


def test_workers_request_the_share_of_a_gpu_that_their_bundle_has() -> None:
    def environment(config: str) -> dict[str, str]:
        options = llm_options(load_settings(config))
        return options["ray_actor_options"]["runtime_env"]["env_vars"]

    shared = environment("gpu-node.yaml")
    assert shared["VLLM_RAY_PER_WORKER_GPUS"] == "0.6"
    assert shared["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert "VLLM_RAY_PER_WORKER_GPUS" not in environment("cluster.yaml")


def test_arguments_of_serve_run_are_a_config_and_settings() -> None:
    settings = read_arguments({"config": "gpu-node.yaml", "index.shards": "3"})
    assert (settings.index.shards, settings.serve.host) == (3, "0.0.0.0")
