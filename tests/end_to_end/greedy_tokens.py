"""Replies of a served model with tensor parallelism of 1 and of 2 to the same prompts.

    python -m tests.end_to_end.greedy_tokens FOLDER

Writes FOLDER/tokens.json: the token ids of each reply by the number of parts. It is a process of
its own because Ray reads its authentication settings when it is imported.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import ray
from ray import serve

from cluster.settings.settings import load_settings
from serve.llm_app import LLM_APP, build_llm_app
from tests.tiny_llama import make_tiny_llama

TOKENS = "tokens.json"
PARTS = (1, 2)
SUBJECTS = ("aspirin", "metformin", "insulin", "BRCA1", "p53")
PROMPTS = [
    f"{ask} {subject}?"
    for ask in ("What lowers", "Does the dose matter of", "Which gene goes with", "List all of")
    for subject in SUBJECTS
]
ENGINE = "{dtype: float32, max_model_len: 256, enforce_eager: true, max_num_seqs: 4, "
ENGINE += "kv_cache_memory_bytes: 33554432, enable_prefix_caching: true}"


def settings_for(model: Path, parts: int) -> Any:
    return load_settings(
        None,
        [
            f"llm.model=file:{model}",
            f"llm.tensor_parallel={parts}",
            f"llm.engine={ENGINE}",
            "serve.llm.cpus=1",
            "serve.llm.max_replicas=1",
        ],
    )


async def ask_all(handle: Any, model_id: str) -> list[list[int]]:
    async def ask(prompt: str) -> list[int]:
        body = {
            "model": model_id,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0.0,
            "max_tokens": 16,
            "return_token_ids": True,
        }
        reply = await handle.chat.remote(body)
        if "error" in reply:
            raise RuntimeError(reply["error"]["message"])
        found: list[int] = reply["choices"][0]["token_ids"]
        return found

    return await asyncio.gather(*(ask(prompt) for prompt in PROMPTS))


def main(folder: Path) -> None:
    model = make_tiny_llama(folder / "llama")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    said = {}
    for parts in PARTS:
        settings = settings_for(model, parts)
        handle = serve.run(build_llm_app(settings), name=LLM_APP, route_prefix=None)
        said[str(parts)] = asyncio.run(ask_all(handle, settings.llm.model_id))
        serve.delete(LLM_APP)
    (folder / TOKENS).write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
