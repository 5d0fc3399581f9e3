"""Settings of the service: its deployments, HTTP API and batches."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cluster.index.filters.filters import as_day
from cluster.settings.fields import Positive, Seconds, Share, Strict
from cluster.settings.presets import NamedSystems
from cluster.settings.saved_settings import SavedSettings

# A host name without scheme and port; `*` alone matches every name.
HostName = Annotated[str, Field(pattern=r"^(\*|(\*\.)?[A-Za-z0-9._-]+)$", max_length=255)]


class StageSettings(Strict):
    """One deployment: number and resources of its replicas, queue length and deadline.

    Each caller may have `max_queued` requests waiting in addition to those that the replicas
    process; -1 sets no limit. A replica is added when the replicas have more than `target_ongoing`
    requests each (default: see `cluster.settings.limits`).
    """

    min_replicas: Positive
    max_replicas: Positive
    cpus: Annotated[float, Field(ge=0)]
    gpus: Annotated[float, Field(ge=0)]
    max_ongoing: Positive
    deadline_s: Seconds
    batch: Positive = 1
    max_queued: Annotated[int, Field(ge=-1)] = -1
    target_ongoing: Positive | None = None


class SpreadStageSettings(StageSettings):
    """A stage with placement constraints.

    At most `per_node` replicas run on a node, which limits how many are lost with it; 0 sets no
    limit. Replicas start only on Ray nodes with the label citeray/pool=`pool`; "" allows any node.
    Not available for the language model, whose replicas Ray places by their GPUs.
    """

    per_node: Annotated[int, Field(ge=0, le=100)] = 0
    pool: Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")] = ""


class HttpSettings(Strict):
    """Limits and access control of the HTTP API.

    Each gateway replica processes `at_once` questions, while up to `waiting` more wait in a queue
    for at most `wait_s` seconds; further requests are rejected and asked to retry later. With
    `at_once: auto`, the gateways together process as many as the language model has slots.

    `api_keys_env` is the environment variable that holds `name:key` pairs; if it is empty, no key
    is required. `per_minute` is the rate limit of each key (0: none). A request body has at most
    `body_kb` KiB and must arrive within `body_s` seconds. The server accepts a Host header that is
    an IP address, localhost, `serve.host` or a name in `hosts` (`*.NAME`: all names below NAME).
    """

    api_keys_env: str
    hosts: tuple[HostName, ...]
    per_minute: Annotated[int, Field(ge=0)]
    cors_origins: tuple[str, ...]
    body_kb: Positive
    body_s: Seconds
    at_once: Positive | Literal["auto"]
    waiting: Annotated[int, Field(ge=0)]
    wait_s: Seconds
    log_questions: bool


class BatchSettings(Strict):
    """Batches over HTTP.

    `concurrent` questions run at a time, shared equally between API keys. At most `waiting`
    batches wait, and at most `waiting_per_key` of one key. Batches are stored in `folder`, which
    must be shared on a cluster; finished ones are deleted after `keep_days`.
    """

    folder: Path
    concurrent: Positive
    waiting: Positive
    waiting_per_key: Positive = 20
    keep_days: Annotated[float, Field(gt=0)]


def _day_or_none(value: Any) -> Any:
    # YAML parses an unquoted day as a date.
    value = value.isoformat() if type(value) is date else value
    if value:
        as_day(value, "serve.until")
    return value


class ServeSettings(Strict):
    """The service: its address, presets, index version, deadlines and stages.

    Every `follow_s` seconds, each replica checks for a newer version of the index; 0 disables the
    check. With `as_of`, the name of a source file, the service stays at the newest version that
    contains no later source file. Articles that may have been published after `until`, a day such
    as 2024-05-31, are never found; "" sets no limit. `systems` adds presets by name, each as a
    mapping or as the path of a file. A shutdown of the service or of one replica waits up to
    `drain_s` seconds for questions in progress; `auto` waits for the longest deadline.
    `trace_share` is the share of requests whose traces are sent to OpenTelemetry.
    """

    host: str
    port: Annotated[int, Field(ge=1, le=65535)]
    system: str
    systems: NamedSystems = Field(default={})
    request_deadline_s: Seconds
    follow_s: Annotated[float, Field(ge=0)]
    as_of: str = ""
    until: Annotated[str, BeforeValidator(_day_or_none)] = ""
    drain_s: Annotated[float, Field(ge=0)] | Literal["auto"]
    trace_share: Share
    http: HttpSettings
    batches: BatchSettings
    saved: SavedSettings
    gateway: SpreadStageSettings
    expander: SpreadStageSettings
    encoder: SpreadStageSettings
    shard: SpreadStageSettings
    reranker: SpreadStageSettings
    writer: SpreadStageSettings
    llm: StageSettings
