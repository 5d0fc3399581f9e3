"""Replies of two served models, one of them without a chat template, and of a judge.

    python -m tests.end_to_end.role_models FOLDER

Writes FOLDER/said.json. It is a process of its own because Ray reads its authentication settings
when it is imported.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from cluster.settings.settings import Settings, load_settings
from evaluation.answers.find_judge import open_judge
from serve.client.run_graph import served_models
from serve.llm.chat_form import Message
from serve.llm.language_model import ChatModel
from tests.end_to_end.greedy_tokens import ENGINE
from tests.tiny_llama import make_tiny_llama

SAID = "said.json"
HELLO: Message = {"role": "user", "content": "What lowers glucose?"}


def settings_for(folder: Path, encoder: Path) -> Settings:
    one, other = (make_tiny_llama(folder / f"llama-{seed}", seed) for seed in (0, 1))
    role = f"kind: vllm, model: 'file:{other}', engine: {ENGINE}"
    return load_settings(
        None,
        [
            f"encoder.model=file:{encoder}",
            "encoder.adapter=",
            f"llm.model=file:{one}",
            f"llm.engine={ENGINE}",
            "serve.llm.cpus=1",
            "ray.cpus=3",
            f"models.ranker={{{role}, model_id: ranker, completion: true}}",
            f"models.judge={{{role}, model_id: judge}}",
        ],
    )


def ask(model: ChatModel | None) -> str:
    assert model is not None
    return asyncio.run(model.chat([HELLO], max_tokens=12, temperature=0.0))


def ask_aloud(model: ChatModel) -> tuple[str, list[str]]:
    pieces: list[str] = []
    call = model.chat([HELLO], max_tokens=12, temperature=0.0, say=pieces.append)
    return asyncio.run(call), pieces


def main(folder: Path, encoder: Path) -> None:
    settings = settings_for(folder, encoder)
    with served_models(settings) as models:
        assert models.ranker is not None
        said = {"writer": ask(models.writer), "ranker": ask(models.ranker)}
        whole, pieces = ask_aloud(models.ranker)
        said |= {"aloud": whole, "pieces": "".join(pieces)}
    with open_judge("settings", "", settings) as judge:
        said |= {"judge": ask(judge.model), "judge's name": judge.name}
    (folder / SAID).write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
