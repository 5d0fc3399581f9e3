"""Compare the language model's throughput through the graph with its deployment alone.

    python -m benchmarks.bench_llm QUESTIONS.json --index INDEX [--limit 24] [--rounds 4]
        [--config gpu-node.yaml] [--set llm.tensor_parallel=2]

Both paths take turns on the same prompts, ideal answers from each question's own snippets, with 8
concurrent callers and greedy decoding: one through a handle to the language model's deployment, one
through the writer deployment, which handles all model calls of a question. Prints tokens per second
of each round, the ratio of the medians, and the number of identical replies.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

from ray import serve as ray_serve
from rich.console import Console

from benchmarks.questions import Row, asked, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.answers import Evidence
from cluster.records import Passage
from cluster.settings.settings import load_settings
from serve.app import APP
from serve.client.run_graph import running_graph
from serve.contracts.backend import call_handle
from serve.llm.chat_form import Message, chat_request, read_reply
from serve.llm.prompts import find_prompt, number_passages, quote
from serve.llm_app import DEPLOYMENT, LLM_APP

SMALLEST = "QUESTIONS --index INDEX --limit 2 --rounds 1"

CALLERS = 8
MAX_TOKENS = 64
Ask = Callable[[Sequence[Message]], Awaitable[tuple[str, int]]]


def prompts(rows: Sequence[Row], characters: int) -> list[list[Message]]:
    prompt = find_prompt("ideal", "summary")
    found = []
    for row in rows:
        texts = [snippet["text"] for snippet in row["snippets"]]
        evidence = [Evidence(Passage(n, "abstract", 0, len(t), t)) for n, t in enumerate(texts, 1)]
        shown = number_passages(evidence, characters)
        found.append(prompt.messages(question=quote(row["body"]), evidence=shown))
    return found


async def round_of(ask: Ask, conversations: Sequence[Sequence[Message]]) -> tuple[list[str], float]:
    """Return (replies, seconds) of all conversations with `CALLERS` concurrent callers."""
    turns = asyncio.Semaphore(CALLERS)

    async def turn(messages: Sequence[Message]) -> str:
        async with turns:
            return (await ask(messages))[0]

    begun = time.perf_counter()
    replies = await asyncio.gather(*map(turn, conversations))
    return list(replies), time.perf_counter() - begun


async def compare(model: str, conversations: Sequence[Sequence[Message]], rounds: int) -> list[str]:
    """Compare both paths in turns, and return the lines to print."""
    engine = ray_serve.get_deployment_handle(DEPLOYMENT, LLM_APP)
    writer = ray_serve.get_deployment_handle("Writer", APP)
    tokens: dict[str, int] = {}

    async def alone(messages: Sequence[Message]) -> tuple[str, int]:
        body = chat_request(model, messages, max_tokens=MAX_TOKENS, temperature=0.0)
        reply = await call_handle(engine, "chat", body)
        text, count = read_reply(reply, constrained=False), reply["usage"]["completion_tokens"]
        tokens[text] = count
        return text, count

    async def by_us(messages: Sequence[Message]) -> tuple[str, int]:
        options = {"max_tokens": MAX_TOKENS, "temperature": 0.0}
        return await call_handle(writer, "chat", list(messages), options), 0

    await round_of(alone, conversations)
    rates: dict[str, list[float]] = {"alone": [], "by us": []}
    same = total = 0
    for _ in range(rounds):
        expected, took = await round_of(alone, conversations)
        count = sum(tokens[text] for text in expected)
        rates["alone"].append(count / took)
        replies, took = await round_of(by_us, conversations)
        rates["by us"].append(sum(tokens.get(text, 0) for text in replies) / took)
        same += sum(a == b for a, b in zip(expected, replies, strict=True))
        total += len(replies)
    ratio = statistics.median(rates["by us"]) / statistics.median(rates["alone"])
    return [
        *(
            f"{name}: tokens a second {', '.join(f'{rate:.1f}' for rate in found)}"
            for name, found in rates.items()
        ),
        f"by us / alone {ratio:.3f}; {same} of {total} replies the same",
    ]


def main() -> None:
    parser = question_parser(__doc__, limit=24)
    parser.add_argument("--rounds", type=int, default=4)
    given = parse_arguments(parser, SMALLEST)
    settings = load_settings(given.config, overrides(given))
    conversations = prompts(asked(given), settings.llm.evidence_characters)
    with running_graph(settings, Console(stderr=True)):
        lines = asyncio.run(compare(settings.llm.model_id, conversations, given.rounds))
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
