"""Ray Serve application of the language models.

It is separate from the graph's application, so that a new index version or changed stage settings
do not reload the model, and the model can load while the index is built. vLLM is imported only in
the replica, so that the cluster's head needs neither vLLM nor a GPU.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from ray import serve as ray_serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from cluster.errors import InputError, LLMError
from cluster.models.adapters import model_folder
from cluster.models.store import as_transformers_folder
from cluster.ray.orphan_processes import start_orphan_watcher
from cluster.settings.limits import shutdown_s, target_ongoing
from cluster.settings.settings import Settings, load_settings
from cluster.settings.stages.llm import LanguageModelSettings
from serve.contracts.backend import call_handle, stream_handle
from serve.llm.chat_form import (
    Message,
    Say,
    brief_error,
    chat_request,
    read_asked,
    read_pieces,
)
from serve.llm.language_model import ChatModel
from serve.llm.model_roles import in_place_of_the_writer

LLM_APP = "citeray-llm"
# Application for a graph that runs outside Serve, deleted when that graph ends.
MODELS_APP = "citeray-models"
DEPLOYMENT = "LanguageModel"


def llm_folder(settings: Settings) -> Path:
    """Return the language model's folder in the layout that vLLM loads."""
    return as_transformers_folder(model_folder(settings.llm))


def llm_dtype(settings: Settings) -> str:
    """Return the dtype of the language model.

    On GPUs vLLM chooses ("auto"), because this process may not see a GPU. A CPU without bfloat16
    support gets float32: emulating bfloat16 takes twice as long.
    """
    if settings.serve.llm.gpus:
        return "auto"
    from cluster.models.hardware import choose_dtype

    return str(choose_dtype("auto", "cpu")).removeprefix("torch.")


class LanguageModel:
    """The vLLM engine of `ray.serve.llm`, called with OpenAI request bodies.

    A Serve application has one root deployment, the first model; `beside` are the other models.
    """

    # A coroutine, which Ray Serve awaits.
    async def __init__(self, settings: Settings, *beside: Any) -> None:  # type: ignore[misc]
        from ray.serve.llm import LLMConfig

        folder = await asyncio.to_thread(llm_folder, settings)
        config = LLMConfig(**llm_config(settings, folder, llm_dtype(settings)))
        # The model is already on this node; Ray would start a process only to download it.
        config.get_or_create_callback().ctx.run_init_node = False
        if not settings.serve.llm.gpus and "OMP_NUM_THREADS" not in settings.llm.environment:
            # Ray limits a process to one thread per requested CPU, and the engine's process
            # inherits this variable.
            os.environ["OMP_NUM_THREADS"] = str(os.cpu_count() or 1)
        start_orphan_watcher()
        one_process = not settings.serve.llm.gpus and settings.llm.tensor_parallel == 1
        self._server = _server(config, one_process=one_process)
        await self._server.start()

    async def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the completion of a chat or prompt request, or `{"error": ...}`."""
        async for response in await self._replies(body):
            reply: dict[str, Any] = response.model_dump()
            return reply
        return {"error": {"message": "it ended without an answer"}}

    async def chat_in_pieces(self, body: dict[str, Any]) -> AsyncIterator[str]:
        """Yield the lines of server-sent events of the streamed request `body`."""
        async for part in await self._replies(body):
            # A part may have several lines; an error is an object instead of a string.
            for lines in part if isinstance(part, list) else [part]:
                said = lines if isinstance(lines, str) else f"data: {lines.model_dump_json()}"
                for line in said.splitlines():
                    yield line

    async def _replies(self, body: dict[str, Any]) -> Any:
        from ray.serve.llm.openai_api_models import ChatCompletionRequest, CompletionRequest

        if "prompt" in body:
            return await self._server.completions(CompletionRequest(**body))
        return await self._server.chat(ChatCompletionRequest(**body))

    async def check_health(self) -> None:
        """Check the engine's health; Serve calls this and replaces the replica if it raises."""
        await self._server.check_health()

    async def __del__(self) -> None:
        # Serve awaits this when it stops the replica; the engine runs in its own process.
        if server := getattr(self, "_server", None):
            await server.__del__()


def _server(config: Any, *, one_process: bool) -> Any:
    """Return a `ray.serve.llm` server, not started; `one_process`: its engine is one process."""
    from ray.llm._internal.serve.engines.vllm.vllm_engine import VLLMEngine
    from ray.serve.llm.deployment import LLMServer

    class Engine(VLLMEngine):
        def _start_async_llm_engine(self, args: Any, engine_config: Any, group: Any) -> Any:
            if one_process:
                # By default Ray uses one process to schedule and one to compute. On a CPU the
                # first busy-waits on a core that the second needs, and both import vLLM.
                engine_config.parallel_config.distributed_executor_backend = "uni"
            return super()._start_async_llm_engine(args, engine_config, group)

    class Server(LLMServer):
        async def _start_engine(self) -> None:
            # Ray's implementation also starts a process that reports usage statistics.
            await self.engine.start()

    return Server.sync_init(config, engine_cls=Engine)


class HandleChatModel:
    """`ChatModel` that Ray Serve serves; its handle is looked up on the first call."""

    def __init__(
        self,
        model_id: str,
        deployment: str = DEPLOYMENT,
        app: str = LLM_APP,
        *,
        completion: bool = False,
    ) -> None:
        self._model_id = model_id
        self._deployment = (deployment, app)
        self._completion = completion
        self._handle: Any = None

    async def chat(
        self, messages: Sequence[Message], *, say: Say | None = None, **options: Any
    ) -> str:
        """Return the reply to `messages`; `options` are those of `ChatModel.chat`."""
        body = chat_request(self._model_id, messages, completion=self._completion, **options)
        try:
            if self._handle is None:
                self._handle = ray_serve.get_deployment_handle(*self._deployment)
            if say is None:
                reply = await call_handle(self._handle, "chat", body)
            else:
                lines = stream_handle(self._handle, "chat_in_pieces", {**body, "stream": True})
                async with aclosing(lines):
                    reply = await read_pieces(lines, say)
        except (RayError, RayServeException) as error:
            raise LLMError(f"the language model is lost: {error}") from error
        # LLMServer yields errors instead of raising them.
        if "error" in reply:
            raise LLMError(f"the language model refused: {brief_error(reply)}")
        return read_asked(reply, options)


def served_model(name: str, chosen: LanguageModelSettings, app: str = LLM_APP) -> ChatModel:
    """Return the model that this cluster serves for a role; "" is the writer."""
    return HandleChatModel(chosen.model_id, deployment_of(name), app, completion=chosen.completion)


def deployment_of(name: str) -> str:
    """Return the deployment name of a role: "LanguageModel", "LanguageModel-ranker"."""
    return f"{DEPLOYMENT}-{name}" if name else DEPLOYMENT


def served_here(settings: Settings) -> dict[str, Settings]:
    """Return the roles whose models this cluster serves, the writer ("") first, with settings.

    The settings have the model of the role as `llm`. The judge is not included.
    """
    found = {"": settings} if settings.llm.kind == "vllm" else {}
    for name, role in settings.models.roles().items():
        if role.kind == "vllm" and name != "judge":
            found[name] = in_place_of_the_writer(settings, role)
    return found


def placement_bundles(settings: Settings) -> list[dict[str, float]]:
    """Return one resource bundle for each GPU, or CPU slot, over which the model is split."""
    llm, stage = settings.llm, settings.serve.llm
    bundle: dict[str, float] = {"CPU": stage.cpus}
    if stage.gpus:
        bundle["GPU"] = stage.gpus
    if llm.accelerator:
        bundle[f"accelerator_type:{llm.accelerator}"] = 0.001
    return [dict(bundle) for _ in range(llm.tensor_parallel)]


def llm_config(settings: Settings, folder: Path | str, dtype: str) -> dict[str, Any]:
    """Return the keyword arguments of `ray.serve.llm.LLMConfig`.

    `dtype` is used unless `llm.engine` names one.
    """
    llm = settings.llm
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": llm.model_id, "model_source": str(folder)},
        "placement_group_config": {
            "bundles": placement_bundles(settings),
            "strategy": "STRICT_PACK",
        },
        "engine_kwargs": {
            "dtype": dtype,
            **llm.engine,
            "tensor_parallel_size": llm.tensor_parallel,
            # Otherwise a JSON reply can continue with white space up to its token limit.
            "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        },
    }
    if llm.accelerator:
        config["accelerator_type"] = llm.accelerator
    return config


def llm_options(settings: Settings, name: str = "") -> dict[str, Any]:
    """Return the deployment's options; the replica shares the first bundle with its engine."""
    llm, stage = settings.llm, settings.serve.llm
    environment = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        # FlashInfer's sampler compiles kernels at its first use, which needs nvcc.
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        **llm.environment,
    }
    if 0 < stage.gpus < 1:
        # By default vLLM's workers request a whole GPU, which Ray cannot place in a smaller bundle.
        environment.setdefault("VLLM_RAY_PER_WORKER_GPUS", str(stage.gpus))
    options: dict[str, Any] = {
        "name": deployment_of(name),
        "max_ongoing_requests": stage.max_ongoing,
        "graceful_shutdown_timeout_s": shutdown_s(settings),
        "ray_actor_options": {"num_cpus": 0, "runtime_env": {"env_vars": environment}},
        "placement_group_bundles": placement_bundles(settings),
        "placement_group_strategy": "STRICT_PACK",
    }
    if stage.max_replicas > stage.min_replicas:
        options["autoscaling_config"] = {
            "min_replicas": stage.min_replicas,
            "max_replicas": stage.max_replicas,
            "target_ongoing_requests": target_ongoing(settings, "llm"),
        }
    else:
        options["num_replicas"] = stage.min_replicas
    return options


def build_llm_app(settings: Settings) -> Any:
    """Return the Serve application of all models that this cluster serves (`served_here`).

    Raises InputError if there are none.
    """
    wrapped: Any = ray_serve.deployment(LanguageModel)
    models = served_here(settings)
    if not models:
        raise InputError("llm: this cluster serves no language model; set llm.kind=vllm")
    (first, chosen), *others = models.items()
    beside = [wrapped.options(**llm_options(own, name)).bind(own) for name, own in others]
    return wrapped.options(**llm_options(chosen, first)).bind(chosen, *beside)


def read_arguments(args: dict[str, str]) -> Settings:
    """Load settings from the arguments of `serve run`: `config`, and settings by dotted name."""
    overrides = [f"{key}={value}" for key, value in args.items() if key != "config"]
    return load_settings(args.get("config") or os.environ.get("CITERAY_CONFIG"), overrides)


def build(args: dict[str, str]) -> Any:
    """Build the application. RayService imports it as `serve.llm_app:build`."""
    return build_llm_app(read_arguments(args))
