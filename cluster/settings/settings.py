"""Settings, read from YAML files once at program start and then passed on as arguments.

`laptop.yaml` is complete and holds the defaults. Another file overrides the keys that it contains.
With `over: cluster.yaml` at its head, it is merged over that file, which is merged over the
defaults. `--set a.b=c` overrides all files. Unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from cluster.errors import InputError, cut
from cluster.index.filters.filters import as_day
from cluster.settings.answer_settings import WrittenBy
from cluster.settings.parse_yaml import MAX_DEPTH
from cluster.settings.presets import NamedSystems
from cluster.settings.read_config import CONFIGS, explain, merge, place_of, read_config, read_yaml
from cluster.settings.saved_settings import SavedSettings
from cluster.storage.object_store import check_url, local_path
from cluster.storage.places import Place, StoredPlace

DEFAULT_CONFIG = "laptop.yaml"
# Keys whose mappings are replaced, not merged: the engine options of a laptop would slow down a
# model on a GPU, and a preset names the preset that it extends itself.
WHOLE = frozenset({"engine", "environment", "systems"})

Positive = Annotated[int, Field(gt=0)]
# The upper limit keeps socket timeouts in their valid range.
Seconds = Annotated[float, Field(gt=0, le=10**6)]
Share = Annotated[float, Field(ge=0, le=1)]
SemanticType = Annotated[str, Field(pattern=r"^T\d{3}$")]
# A host name without scheme and port; `*` alone matches every name.
HostName = Annotated[str, Field(pattern=r"^(\*|(\*\.)?[A-Za-z0-9._-]+)$", max_length=255)]


class Strict(BaseModel):
    """Base class of all settings: immutable; rejects unknown keys, infinities and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RaySettings(Strict):
    """The local Ray, started if RAY_ADDRESS is not set; `cpus: 0` uses all cores."""

    cpus: Annotated[int, Field(ge=0)]
    object_store_mb: Annotated[int, Field(ge=128)]


def _path_or_url(value: Any) -> Any:
    """Return a Path, or the URL of an object store as a string: a Path would merge its slashes."""
    if not isinstance(value, str):
        return value
    path = local_path(value)
    if path is None:
        check_url(value)
    return path or value


class TokenVectorSettings(Strict):
    """How a shard stores the token vectors of its passages, which late interaction ranks by.

    Each vector is quantised to `components` numbers of `bits` bits. The quantiser is trained on
    `training_passages`. `pool` tokens of a passage, on average, are pooled into one vector.
    """

    components: Annotated[int, Field(ge=8, le=1024, multiple_of=8)]
    bits: Literal[1, 2, 4, 8]
    pool: Annotated[int, Field(ge=1, le=8)]
    training_passages: Positive


class IndexSettings(Strict):
    """The index: its location, and the options of its vectors, BM25 and build.

    `path` is a folder, or an s3:// or gs:// URL; files read from a URL are copied to `cache`.
    `vectors` is the HNSW storage: flat float32, 16-bit floats, or 8-bit scalars. With
    `token_vectors: none`, no token vectors are stored, and late interaction encodes passages for
    each question. `build_gpus` is the fraction of a GPU that is reserved while CAGRA builds a
    shard's graph; 0 builds it on the CPU.
    """

    path: Annotated[Path | str, BeforeValidator(_path_or_url)]
    cache: Path
    shards: Annotated[int, Field(ge=1, le=4096)]
    vectors: Literal["flat", "fp16", "sq8"]
    hnsw_m: Annotated[int, Field(ge=4, le=128)]
    ef_construction: Positive
    ef_search: Positive
    exact_below: Annotated[int, Field(ge=0)]
    token_vectors: TokenVectorSettings | Literal["none"]
    bm25_over: tuple[Literal["citations", "passages"], ...]
    bm25_k1: Annotated[float, Field(ge=0)]
    bm25_b: Share
    training_vectors: Positive
    build_threads: Positive
    build_gpus: Annotated[float, Field(ge=0, le=1)] = 0

    @property
    def token_codec(self) -> TokenVectorSettings | None:
        """How token vectors are quantised; None if they are not stored."""
        return None if self.token_vectors == "none" else self.token_vectors

    @property
    def place(self) -> Place:
        """Location of the index, independent of the working directory."""
        if isinstance(self.path, str):
            return StoredPlace.at(self.path, self.cache.resolve())
        return self.path.resolve()


class SplitSettings(Strict):
    """How abstracts are split into passages.

    `size` and `overlap` are in characters, or in tokens for the method `sections`.
    """

    method: Literal["characters", "sentences", "sections"]
    size: Positive
    overlap: Annotated[int, Field(ge=0)]


class EncoderSettings(Strict):
    """The encoder, and how it runs.

    During a build, `actors` actors embed in parallel, each with `gpus` GPUs or `threads` threads.
    `batch_size` is in texts. With `gpus`, a batch holds as many tokens as `batch_size` texts of
    `max_tokens`, and each actor works on two tables of passages at once.

    `adapter` is the name of an adapter made by `citeray train encoder`, which is merged into
    `model`. If `model` is an adapter itself, its base model is loaded with it.

    `runtime` is the runtime of the encoder and the reader on CPUs; "auto" takes the faster one.
    """

    model: str
    sha256: str = ""
    adapter: str = ""
    device: str
    runtime: Literal["auto", "torch", "openvino"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    max_tokens: Positive
    batch_size: Positive
    threads: Positive
    actors: Positive
    gpus: Annotated[float, Field(ge=0)]
    query_prefix: str = ""


class VocabularySettings(Strict):
    """Sources of the vocabulary.

    `concepts` is a release of MeSH or UMLS, or "" to use only concepts found in the corpus.
    `lexicons` are files with more names of these concepts (`cluster.text.read_lexicon`). From
    UMLS, the concepts of the semantic types `umls_types` are used in addition to those of MeSH.
    """

    concepts: str
    concepts_sha256: str = ""
    lexicons: tuple[str, ...] = ()
    umls_types: tuple[SemanticType, ...]
    abbreviation_min_citations: Positive


class RecogniserSettings(Strict):
    """How entities are found: with the index's vocabulary, or with a token classifier.

    `labels` are the entity types of the classifier that are used; an empty list uses all.
    """

    kind: Literal["vocabulary", "transformer"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    labels: tuple[str, ...] = ()


class RerankerSettings(Strict):
    """The reranker.

    `model` is a cross-encoder. Late interaction uses the encoder instead, with `adapter` if one is
    given. Without an adapter, passages of the index are scored by their stored token vectors; the
    token vectors of other passages are cached in at most `cache_mb` MB.
    """

    kind: Literal["late-interaction", "cross-encoder"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    batch_size: Positive
    cache_mb: Annotated[int, Field(ge=0)] = 0

    @property
    def is_stage(self) -> bool:
        """Whether it loads its own model; late interaction without an adapter does not."""
        return self.kind == "cross-encoder" or bool(self.adapter)


class ReaderSettings(Strict):
    """The model that reads the evidence: `model`, or `adapter` with its base model.

    It reads a citation in windows of `max_tokens` tokens, question and text together.
    `calibration` is a file that `citeray train calibration` made for this reader; None uses the
    calibration of the shipped reader. A `zero-shot` reader has no model of its own: the reranker's
    cross-encoder predicts the relevance, and the NLI model of `support` predicts the stance.
    """

    kind: Literal["trained", "zero-shot"] = "trained"
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    max_tokens: Annotated[int, Field(ge=64)]
    batch_size: Positive
    calibration: Path | None = None


class SupportSettings(Strict):
    """How a sentence is checked against the evidence.

    A sentence with a support score below `threshold` is dropped. A passage contradicts a sentence
    if its contradiction score is at least `contradiction`.
    """

    kind: Literal["similarity", "nli"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    threshold: Share
    contradiction: Share


class LanguageModelSettings(Strict):
    """A language model: where it runs, and the options of its engine if it is served here.

    Kind `vllm` serves `model` through Ray, with `adapter` merged into it; kind `url` calls an
    OpenAI-compatible endpoint. Set `completion` for a base model, which has no chat template and
    only continues a text.
    """

    kind: Literal["vllm", "url", "none"]
    model: str = ""
    adapter: str = ""
    sha256: str = ""
    model_id: str
    url: str = ""
    api_key_env: str = ""
    completion: bool = False
    accelerator: str = ""
    tensor_parallel: Positive = 1
    engine: dict[str, Any] = {}
    environment: dict[str, str] = {}
    max_concurrent: Positive = 8


class LLMSettings(LanguageModelSettings):
    """The writer, which also does the work of every role that `models` does not assign.

    `ideal_from` and `exact_from` are the sources of the ideal and the exact answer if the preset
    names none: the model, or sentences and names of the evidence. `examples` is the folder of
    few-shot examples, for presets that use them.
    """

    examples: Path | None = None
    ideal_tokens: Positive
    exact_tokens: Positive
    ideal_from: WrittenBy
    exact_from: WrittenBy
    temperature: Annotated[float, Field(ge=0)]
    evidence_characters: Positive


class EntrezSettings(Strict):
    """PubMed's E-utilities. A cached reply is valid for `cache_days`; `deadline_s` limits a call.

    `timeout_s` limits a single request.
    """

    base_url: str
    api_key_env: str
    email: str
    tool: str
    cache: Path
    cache_days: Annotated[float, Field(ge=0)]
    cache_mb: Positive
    timeout_s: Seconds
    deadline_s: Seconds


class StageSettings(Strict):
    """One deployment: number and resources of its replicas, queue length and deadline.

    Each caller may have `max_queued` requests waiting in addition to those that the replicas
    process; -1 sets no limit.
    """

    min_replicas: Positive
    max_replicas: Positive
    cpus: Annotated[float, Field(ge=0)]
    gpus: Annotated[float, Field(ge=0)]
    max_ongoing: Positive
    deadline_s: Seconds
    batch: Positive = 1
    max_queued: Annotated[int, Field(ge=-1)] = -1


class RoleSettings(LanguageModelSettings):
    """A language model for one role. `stage` sets its replicas (default: as `serve.llm`)."""

    stage: StageSettings | None = None

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if self.kind == "none":
            raise ValueError("kind none: leave the role out, and the writer does its part")
        wanted = "model" if self.kind == "vllm" else "url"
        if not getattr(self, wanted):
            raise ValueError(f"kind {self.kind} needs {wanted}")
        return self


class ModelsSettings(Strict):
    """Language models for single roles; the writer does the work of a role without a model.

    `rewriters` rewrite questions, and take turns if a question is rewritten several times (paper
    003 has one pseudo-document from each of two); `ranker` ranks passages (004: RankZephyr);
    `judge` judges answers for `evaluate` and `ablate`, and is not served with the endpoint.
    """

    rewriters: tuple[RoleSettings, ...] = ()
    ranker: RoleSettings | None = None
    judge: RoleSettings | None = None

    def roles(self) -> dict[str, RoleSettings]:
        """Return the models by role: "rewriter-0", "rewriter-1", "ranker", "judge"."""
        found = {f"rewriter-{number}": role for number, role in enumerate(self.rewriters)}
        found |= {"ranker": self.ranker} if self.ranker else {}
        return found | ({"judge": self.judge} if self.judge else {})


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
    for at most `wait_s` seconds; further requests are rejected and asked to retry later.

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
    at_once: Positive
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
    mapping or as the path of a file. A shutdown waits up to `drain_s` seconds for questions in
    progress. `trace_share` is the share of requests whose traces are sent to OpenTelemetry.
    """

    host: str
    port: Annotated[int, Field(ge=1, le=65535)]
    system: str
    systems: NamedSystems = {}
    request_deadline_s: Seconds
    follow_s: Annotated[float, Field(ge=0)]
    as_of: str = ""
    until: Annotated[str, BeforeValidator(_day_or_none)] = ""
    drain_s: Annotated[float, Field(ge=0)]
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


class Settings(Strict):
    """All settings of a run, read once at program start (`load_settings`)."""

    ray: RaySettings
    index: IndexSettings
    split: SplitSettings
    encoder: EncoderSettings
    vocabulary: VocabularySettings
    recogniser: RecogniserSettings
    reranker: RerankerSettings
    reader: ReaderSettings
    support: SupportSettings
    llm: LLMSettings
    models: ModelsSettings = ModelsSettings()
    entrez: EntrezSettings
    serve: ServeSettings

    @model_validator(mode="after")
    def _zero_shot_reader_has_its_models(self) -> Self:
        if self.reader.kind == "zero-shot":
            if self.reranker.kind != "cross-encoder" or self.support.kind != "nli":
                raise ValueError(
                    "reader.kind zero-shot needs reranker.kind cross-encoder and support.kind nli"
                )
            if self.reader.calibration is None:
                raise ValueError(
                    "reader.kind zero-shot needs reader.calibration: make one with `citeray train "
                    "calibration`"
                )
        return self


def _apply_override(data: dict[str, Any], override: str) -> dict[str, Any]:
    key, separator, value = override.partition("=")
    origin = f"--set {cut(override)}"
    if not separator or not key or key.count(".") > MAX_DEPTH:
        raise InputError(f"{origin}: expected key=value, such as index.shards=4")
    if len(value.splitlines()) > 1:
        raise InputError(f"{origin}: expected a value of one line")
    nested: Any = read_yaml(f"value: {value}", origin)["value"] if value else ""
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return merge(data, nested)


def _config_text(name: str | Path) -> str:
    try:
        found = next((p for p in (Path(name), CONFIGS / str(name)) if p.is_file()), None)
    except OSError as error:
        raise InputError(f"--config {cut(str(name))}: cannot be read: {error.strerror}") from None
    if found is None:
        raise InputError(
            f"--config {name}: no such file; shipped with CiteRay: {', '.join(_shipped())}"
        )
    return read_config(found, f"--config {name}")


def _read_under(name: Any, origin: str) -> dict[str, Any]:
    """Return the shipped settings that `origin` is merged over."""
    if not isinstance(name, str) or name not in _shipped():
        raise InputError(
            f"{origin}: over: {cut(str(name))} is none of the files shipped with CiteRay: "
            + ", ".join(_shipped())
        )
    return read_yaml(_config_text(name), name)


def _shipped() -> list[str]:
    return sorted(p.name for p in CONFIGS.iterdir() if p.name.endswith(".yaml"))


def load_settings(config: str | Path | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Read `laptop.yaml`, merge `config` over it, then `overrides` (each `key=value`).

    A `config` may name a shipped file that it is merged over: `over: cluster.yaml`.

    Raises InputError that names every unknown key, with the nearest valid one, and every invalid
    value.
    """
    data = read_yaml(_config_text(DEFAULT_CONFIG), DEFAULT_CONFIG)
    origin = DEFAULT_CONFIG
    if config is not None and str(config) != DEFAULT_CONFIG:
        own = read_yaml(_config_text(config), str(config))
        if (under := own.pop("over", None)) is not None:
            data = merge(data, _read_under(under, str(config)), WHOLE)
        data = merge(data, own, WHOLE)
        origin = str(config)
    for override in overrides:
        data = _apply_override(data, override)
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise explain(error, Settings, _blamed(error, overrides) or origin) from error


def _blamed(error: ValidationError, overrides: Sequence[str]) -> str:
    """Return "--set" if the first problem is caused by an override; otherwise ""."""
    place = place_of(error.errors()[0])
    keys = [override.partition("=")[0] for override in overrides]
    return "--set" if any(f"{place}.".startswith(f"{key}.") for key in keys) else ""
