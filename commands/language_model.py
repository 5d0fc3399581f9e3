"""The option `--llm URL#MODEL`: any OpenAI-compatible server writes and decides the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import httpx
import typer

from cluster.errors import InputError, cut
from cluster.http_clients import open_client
from commands.context import Context, with_setting

TIMEOUT_S = 10
MAX_NAMES = 10
# Usual ports of servers on a laptop. A closed port on this machine refuses connections immediately.
LOCAL_SERVERS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234}
LOCAL_TIMEOUT_S = 1

LlmOption = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="URL[#MODEL]",
        rich_help_panel="How to answer",
        help="OpenAI-compatible server that writes the answers, such as Ollama's "
        "http://localhost:11434/v1#NAME. Without #MODEL it must serve a single model.",
    ),
]


def with_language_model(context: Context, given: str | None) -> Context:
    """Return the context with the settings for the language model of `--llm`, if given.

    Raises InputError if `given` is not an HTTP address, if no server answers there, or if it names
    no model and the server does not offer exactly one.
    """
    if given is None:
        return context
    url, _, model = given.partition("#")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"--llm {cut(given)}: give an address such as http://localhost:11434/v1")
    # Servers show their address without the path of their API.
    url = url.rstrip("/") + ("" if parts.path.strip("/") else "/v1")
    if model:
        _ask_for_models(url, context.settings.llm.api_key_env, TIMEOUT_S)
    else:
        model = _only_model(url, context.settings.llm.api_key_env)
    chosen = {"kind": "url", "url": url, "model_id": model}
    for key, value in (chosen | {"ideal_from": "model", "exact_from": "model"}).items():
        context = with_setting(context, f"llm.{key}", value)
    return context


def hint_at_local_server(context: Context) -> None:
    """Print how to use a language model server that answers on its usual port of this machine.

    Prints nothing if a language model already writes the answers.
    """
    llm = context.settings.llm
    if llm.kind == "url" or llm.ideal_from == "model":
        return
    for name, port in LOCAL_SERVERS.items():
        url = f"http://127.0.0.1:{port}/v1"
        try:
            models = list_models(url, timeout_s=LOCAL_TIMEOUT_S)
        except InputError:
            continue
        if models:
            context.log.print(
                f"{name} runs on this machine; to let it write the answers: --llm {url}#{models[0]}"
            )
            return


def _only_model(url: str, api_key_env: str) -> str:
    """Return the name of the only model that the server at `url` offers."""
    names = list_models(url, api_key_env)
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"--llm {url}: the server offers no model; load one there")
    offered = ", ".join(cut(name) for name in names[:MAX_NAMES])
    raise InputError(f"--llm {url}: the server offers {len(names)} models; add one: #{offered}")


def list_models(url: str, api_key_env: str = "", timeout_s: float = TIMEOUT_S) -> list[str]:
    """Return the names of the models that the OpenAI-compatible server at `url` offers.

    Raises InputError if the server does not answer with a list of models.
    """
    reply = _ask_for_models(url, api_key_env, timeout_s)
    try:
        reply.raise_for_status()
        listed: Any = reply.json()
        return [str(model["id"]) for model in listed["data"]]
    except httpx.HTTPError as error:
        raise InputError(f"--llm {url}: {cut(str(error))}; is the server running?") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"--llm {url}: the reply of /models is not a list of models; name one: #MODEL"
        ) from None


def _ask_for_models(url: str, api_key_env: str, timeout_s: float) -> httpx.Response:
    """Return the server's reply, which may be an error; raises InputError if there is none."""
    # Imported here, because most commands do not use a language model.
    from serve.llm.language_model import authorization

    try:
        with open_client(timeout=timeout_s) as client:
            return client.get(f"{url}/models", headers=authorization(api_key_env))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InputError(f"--llm {url}: {cut(str(error))}; is the server running?") from None


def warn_of_lost_model(context: Context, losses: Mapping[str, int]) -> None:
    """Print on standard error how many answers the language model should have written but did not.

    `losses` counts the entries of the answers' `degraded`.
    """
    if not losses:
        return
    # Imported here, because most commands do not use a language model.
    from serve.answer.ask_model import LOST_MODEL

    lost = {loss: times for loss, times in losses.items() if loss in LOST_MODEL}
    if lost:
        count, reasons = sum(lost.values()), "; ".join(lost)
        answers = "answer was" if count == 1 else "answers were"
        context.log.print(
            f"The language model gave no usable answer, so {count} {answers} taken from the "
            f"evidence instead ({reasons}).",
            style="yellow",
        )
