"""Requests to E-utilities with rate limit, cache, retries and a deadline.

Uses httpx instead of Biopython's `Bio.Entrez`, which has a fixed server address and no timeout,
blocks its thread, sleeps 15 s between retries, and keeps key and rate limit in globals without a
lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import httpx

from cluster.entrez.cache_replies import ReplyCache
from cluster.entrez.rate_limiter import PER_SECOND, PER_SECOND_WITH_KEY, RateLimiter, limiter_of
from cluster.entrez.read_replies import TransientError
from cluster.errors import CiteRayError, PubMedError
from cluster.http_clients import UnsupportedProxyError, open_async_client
from cluster.settings.stages.entrez import EntrezSettings

T = TypeVar("T")
LOG = logging.getLogger(__name__)
MIB = 1024**2
MAX_WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Retry policy and size limit of replies.

    There are at most `retries` retries, with exponential back-off from `backoff_s` and a random
    reduction of up to a half, or the delay in Retry-After; at most 20 s each. 200 records take
    about 4 MiB; records with thousands of collaborators take a few MiB each.
    """

    retries: int = 4
    backoff_s: float = 0.5
    max_reply_bytes: int = 64 * MIB


class Entrez:
    """POST requests that share connections and one deadline.

    The API key is read from the environment once and sent in the request body, never in a URL,
    which could be logged. It is never written to disk.
    """

    def __init__(
        self,
        settings: EntrezSettings,
        http: httpx.AsyncClient,
        limiter: RateLimiter | None,
        patience: Patience,
    ) -> None:
        self.url = settings.base_url.rstrip("/")
        self.last_problem = ""
        self._settings = settings
        self._http = http
        self._patience = patience
        self._key = os.environ.get(settings.api_key_env, "") if settings.api_key_env else ""
        per_second = PER_SECOND_WITH_KEY if self._key else PER_SECOND
        self._limiter = limiter or limiter_of(self.url, per_second)
        self._cache = ReplyCache(settings.cache, settings.cache_days, settings.cache_mb * MIB)

    async def ask(
        self,
        utility: str,
        params: Mapping[str, str],
        read: Callable[[bytes], T],
        *,
        cached: bool = True,
    ) -> T:
        """Return the result of `read` for the reply; only replies that it accepts are cached.

        Raises PubMedError if the server is still unreachable or failing after all retries, and the
        errors of `read`, except TransientError, which causes a retry.
        """
        where = f"{self.url}/{utility}"
        kept = await asyncio.to_thread(self._cache.read, where, params) if cached else None
        if kept is not None:
            # If the cache entry is damaged, the reply is requested again.
            with suppress(CiteRayError):
                return await asyncio.to_thread(read, kept)
        reply, result = await self._ask_until_read(where, params, read)
        if cached:
            failure = await asyncio.to_thread(self._cache.write, where, params, reply)
            if failure:
                LOG.warning("PubMed's reply is not cached: %s", failure)
        return result

    async def _ask_until_read(
        self, where: str, params: Mapping[str, str], read: Callable[[bytes], T]
    ) -> tuple[bytes, T]:
        tries = 0
        while True:
            await self._limiter.wait()
            try:
                reply = await self._post(where, params)
                return reply, await asyncio.to_thread(read, reply)
            except TransientError as problem:
                tries += 1
                self.last_problem = str(problem)
                if tries > self._patience.retries:
                    raise PubMedError(
                        f"{where}: failed {tries} times, most recently with "
                        f"{problem}; try again later"
                    ) from problem
                wait_s = self._wait_s(tries, problem)
                if problem.rate_limited:
                    self._limiter.hold(wait_s)
            await asyncio.sleep(wait_s)

    def _wait_s(self, tries: int, problem: TransientError) -> float:
        backoff_s = self._patience.backoff_s * 2 ** (tries - 1) * random.uniform(0.5, 1)
        return min(backoff_s if problem.wait_s is None else problem.wait_s, MAX_WAIT_S)

    async def _post(self, where: str, params: Mapping[str, str]) -> bytes:
        """Return the body of a reply with status 200 or 400, which explains the error."""
        timeout_s = self._settings.timeout_s
        try:
            # httpx's timeout applies to each read, so a slow stream of bytes would never reach it.
            async with (
                asyncio.timeout(timeout_s),
                self._http.stream("POST", where, data=self._form(params)) as response,
            ):
                reply = await self._read_limited(response)
        except (TimeoutError, httpx.TimeoutException):
            raise TransientError(f"no reply within {timeout_s:g} s") from None
        except UnsupportedProxyError as error:
            raise PubMedError(f"{where}: {error}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            # The message of InvalidURL may quote a part of a password.
            raise PubMedError(f"{where}: not a valid http(s) URL; check entrez.base_url") from None
        except httpx.HTTPError as error:
            raise TransientError(f"a broken connection ({str(error) or repr(error)})") from None
        status = response.status_code
        if status == 429 or status >= 500:
            asked = response.headers.get("Retry-After", "")
            wait_s = float(asked) if asked.isdecimal() else None
            raise TransientError(f"HTTP {status}", wait_s, rate_limited=status == 429)
        if status not in (200, 400):
            raise PubMedError(f"{where}: HTTP {status}; check entrez.base_url")
        return reply

    async def _read_limited(self, response: httpx.Response) -> bytes:
        reply = bytearray()
        async for chunk in response.aiter_bytes():
            reply += chunk
            if len(reply) > self._patience.max_reply_bytes:
                raise PubMedError(
                    f"{response.url}: a reply of more than {self._patience.max_reply_bytes} "
                    "bytes, larger than any of PubMed; check entrez.base_url"
                )
        return bytes(reply)

    def _form(self, params: Mapping[str, str]) -> dict[str, str]:
        caller = {
            "tool": self._settings.tool,
            "email": self._settings.email,
            "api_key": self._key,
        }
        return {"db": "pubmed", **params, **{k: v for k, v in caller.items() if v}}


@asynccontextmanager
async def entrez_session(
    settings: EntrezSettings,
    limiter: RateLimiter | None,
    patience: Patience,
) -> AsyncIterator[Entrez]:
    """Yield an Entrez for at most `settings.deadline_s`; `limiter` defaults to the process's own.

    Raises PubMedError with the last problem when the deadline passes.
    """
    async with open_async_client(timeout=settings.timeout_s) as http:
        entrez = Entrez(settings, http, limiter, patience)
        try:
            async with asyncio.timeout(settings.deadline_s):
                yield entrez
        except TimeoutError:
            last = f" (last: {entrez.last_problem})" if entrez.last_problem else ""
            raise PubMedError(
                f"{entrez.url}: not finished within {settings.deadline_s:g} s{last}; "
                "try again later, ask for less, or raise entrez.deadline_s"
            ) from None
