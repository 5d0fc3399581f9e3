"""Protocol of language models, and a client for OpenAI-compatible endpoints."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol, Unpack
from weakref import WeakKeyDictionary

import httpx

from cluster.errors import LLMError, brief
from cluster.http_clients import UnsupportedProxyError, open_async_client
from serve.llm.chat_form import (
    ChatOptions,
    Message,
    Say,
    brief_error,
    chat_request,
    read_asked,
    read_pieces,
)

RETRY_STATUS = frozenset({429, 503})
MAX_WAIT_S = 20.0
# Close idle connections earlier than servers do, which wait for 5 s or more.
KEEP_S = 2.0
NO_MODEL = (
    "llm: no language model in this process; set llm.kind=url and llm.url, or start `citeray serve`"
)


class NoModelError(LLMError):
    """No language model is configured."""


def authorization(api_key_env: str) -> dict[str, str]:
    """Return the header with the key in the variable `api_key_env`, or none without a key."""
    # Self-hosted endpoints often need no key; those that do reply 401.
    key = os.environ.get(api_key_env) if api_key_env else None
    return {"Authorization": f"Bearer {key}"} if key else {}


class ChatModel(Protocol):
    """Language model that replies to a conversation with one text."""

    async def chat(
        self, messages: Sequence[Message], *, say: Say | None = None, **options: Unpack[ChatOptions]
    ) -> str:
        """Return the text of the reply; `say` is called with each chunk as it is generated.

        Raise LLMError if the model is unreachable, replies with an error, or is cut off within a
        constrained reply.
        """
        ...


class CountedModel:
    """ChatModel that counts its calls; retries do not count."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.calls = 0

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """Count the call, and return the reply of the model."""
        self.calls += 1
        return await self._model.chat(messages, **options)


class _Clients:
    """One HTTP client per event loop, as a connection belongs to the loop that opened it.

    An asynchronous generator owns each client, so that `shutdown_asyncgens` closes it with the
    loop, as in `asyncio.run`.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._by_loop: WeakKeyDictionary[
            asyncio.AbstractEventLoop, AsyncGenerator[httpx.AsyncClient, None]
        ] = WeakKeyDictionary()

    async def of_this_loop(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = self._keep()
        return await anext(self._by_loop[loop])

    async def _keep(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        limits = httpx.Limits(keepalive_expiry=KEEP_S)
        async with open_async_client(timeout=self._timeout_s, limits=limits) as client:
            while True:
                yield client


class OpenAIChatModel:
    """ChatModel over HTTP. `url` is the API's root, such as `http://127.0.0.1:8000/v1`.

    The key is read from the environment variable `api_key_env` at each call and never stored;
    without a key no `Authorization` is sent. `timeout_s` bounds one attempt. Statuses 429 and 503
    are retried `retries` times with exponential back-off from `backoff_s` seconds, or after the
    time in Retry-After, but at most 20 s. `completion` uses plain completions, for models without
    a chat template.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key_env: str = "",
        timeout_s: float = 60.0,
        retries: int = 3,
        backoff_s: float = 0.5,
        completion: bool = False,
    ) -> None:
        self._completion = completion
        self._url = url.rstrip("/") + ("/completions" if completion else "/chat/completions")
        self._model = model
        self._api_key_env = api_key_env
        self._timeout_s = timeout_s
        self._retries = retries
        self._backoff_s = backoff_s
        self._clients = _Clients(timeout_s)

    async def chat(
        self, messages: Sequence[Message], *, say: Say | None = None, **options: Any
    ) -> str:
        """Return the reply to `messages`; retries a busy endpoint before it raises LLMError."""
        body = chat_request(self._model, messages, completion=self._completion, **options)
        response, reply = await self._post(body, say)
        if reply is None:
            try:
                reply = response.json()
            except ValueError:
                raise LLMError(
                    f"llm: {self._url} did not reply with JSON: {brief(response.text)}"
                ) from None
        return read_asked(reply, options)

    async def _post(
        self, body: Mapping[str, Any], say: Say | None
    ) -> tuple[httpx.Response, dict[str, Any] | None]:
        """Return (response, completion); the completion is None unless it was streamed."""
        client = await self._clients.of_this_loop()
        for attempt in range(self._retries + 1):
            try:
                # httpx's timeout is per read, so it does not limit a server that sends slowly.
                async with asyncio.timeout(self._timeout_s):
                    response, reply = await self._post_once(client, body, say)
            except (TimeoutError, httpx.TimeoutException):
                raise LLMError(
                    f"llm: {self._url} did not answer in {self._timeout_s:g} s"
                ) from None
            except UnsupportedProxyError as error:
                raise LLMError(f"llm: {self._url}: {error}") from None
            except httpx.InvalidURL:
                # The message of InvalidURL may quote part of a password.
                raise LLMError(f"llm: {self._url} is not a valid URL; check llm.url") from None
            except httpx.HTTPError as error:
                raise LLMError(f"llm: {self._url} is unreachable: {error}") from None
            if response.status_code not in RETRY_STATUS or attempt == self._retries:
                break
            await asyncio.sleep(self._wait_s(attempt, response))
        if not response.is_success:
            raise self._refusal(response)
        return response, reply

    async def _post_once(
        self, client: httpx.AsyncClient, body: Mapping[str, Any], say: Say | None
    ) -> tuple[httpx.Response, dict[str, Any] | None]:
        if say is not None:
            body = {**body, "stream": True}
        call = client.stream("POST", self._url, json=body, headers=authorization(self._api_key_env))
        async with call as response:
            # An endpoint without streaming support sends a normal response.
            pieces = response.headers.get("Content-Type", "").startswith("text/event-stream")
            if say is not None and pieces and response.is_success:
                return response, await read_pieces(response.aiter_lines(), say)
            await response.aread()
            return response, None

    def _refusal(self, response: httpx.Response) -> LLMError:
        mend = ""
        if response.status_code in (401, 403) and self._api_key_env:
            mend = f"; set the environment variable {self._api_key_env} to a valid key"
        try:
            said = brief_error(response.json())
        except ValueError:
            said = brief(response.text)
        return LLMError(f"llm: {self._url} answered {response.status_code}: {said}{mend}")

    def _wait_s(self, attempt: int, response: httpx.Response) -> float:
        asked = response.headers.get("Retry-After", "")
        wait = float(asked) if asked.isdecimal() else self._backoff_s * 2**attempt
        return min(wait, MAX_WAIT_S)
