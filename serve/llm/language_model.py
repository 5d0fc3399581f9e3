"""The language model behind one small protocol, and a client for any OpenAI-compatible URL."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import httpx

from cluster.errors import LLMError, brief
from cluster.http_clients import UnsupportedProxyError, open_async_client
from serve.llm.chat_form import (
    Message,
    Say,
    brief_error,
    chat_request,
    read_asked,
    read_pieces,
)

RETRY_STATUS = frozenset({429, 503})
MAX_WAIT_S = 20.0
# Servers close an idle connection after 5 s or more; one must not be used in that moment.
KEEP_S = 2.0
NO_MODEL = (
    "llm: none in this process; set llm.kind to url with its llm.url, or start `citeray serve`"
)


class ChatModel(Protocol):
    """Anything that answers a conversation with one text."""

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float,
        seed: int | None = None,
        repetition_penalty: float | None = None,
        choices: Sequence[str] | None = None,
        json_schema: Mapping[str, Any] | None = None,
        weigh: Sequence[str] | None = None,
        say: Say | None = None,
    ) -> str:
        """The reply's text; one of `choices`, or JSON of `json_schema`, where given.

        With the same `seed` a model draws the same reply to the same words, or tries to.

        With `weigh` the reply is one word, and the text is JSON of the share that the model
        gives each of these words: `{"yes": 0.9, "no": 0.1}`.

        `say` gets each piece of it as the model says it.

        Raises LLMError when the model is unreachable, answers with an error, or is
        cut off in the middle of a constrained reply.
        """
        ...


class CountedModel:
    """A ChatModel that counts how often it was asked, a question's attempts as one."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.calls = 0

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`."""
        self.calls += 1
        return await self._model.chat(messages, **options)


class _Clients:
    """One HTTP client an event loop, as a connection belongs to the loop that opened it.

    Each is kept by an asynchronous generator, which its loop closes at its end
    (`shutdown_asyncgens`, as `asyncio.run` does).
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
    """A ChatModel over HTTP. `url` is the API's root, such as `http://127.0.0.1:8000/v1`.

    The key is read from the environment variable `api_key_env` at each call and never
    stored; without one the request goes out bare. `timeout_s` bounds one attempt. 429 and
    503 are retried `retries` times, waiting `backoff_s`, twice that, ... or what
    Retry-After asks, at most 20 s. A model with `completion` has no chat form.
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
        """See `ChatModel.chat`; retries a busy endpoint before it raises LLMError."""
        body = chat_request(self._model, messages, completion=self._completion, **options)
        response, reply = await self._post(body, say)
        if reply is None:
            try:
                reply = response.json()
            except ValueError:
                raise LLMError(
                    f"llm: {self._url} answered no JSON: {brief(response.text)}"
                ) from None
        return read_asked(reply, options)

    async def _post(
        self, body: Mapping[str, Any], say: Say | None
    ) -> tuple[httpx.Response, dict[str, Any] | None]:
        """(the response, read whole; the completion where it came in pieces)."""
        client = await self._clients.of_this_loop()
        for attempt in range(self._retries + 1):
            try:
                # httpx' own timeout is per read: a server that trickles bytes would escape it.
                async with asyncio.timeout(self._timeout_s):
                    response, reply = await self._post_once(client, body, say)
            except (TimeoutError, httpx.TimeoutException):
                raise LLMError(
                    f"llm: {self._url} did not answer in {self._timeout_s:g} s"
                ) from None
            except UnsupportedProxyError as error:
                raise LLMError(f"llm: {self._url}: {error}") from None
            except httpx.InvalidURL:
                # Its message may quote a part of a password.
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
        call = client.stream("POST", self._url, json=body, headers=self._headers())
        async with call as response:
            # An endpoint that does not stream answers as if it had not been asked to.
            pieces = response.headers.get("Content-Type", "").startswith("text/event-stream")
            if say is not None and pieces and response.is_success:
                return response, await read_pieces(response.aiter_lines(), say)
            await response.aread()
            return response, None

    def _headers(self) -> dict[str, str]:
        # An endpoint of one's own often needs no key; one that does answers 401.
        key = os.environ.get(self._api_key_env) if self._api_key_env else None
        return {"Authorization": f"Bearer {key}"} if key else {}

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
