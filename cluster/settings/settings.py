"""Settings: YAML files read once at the entry; the values travel on as arguments.

`laptop.yaml` is the default and complete; another file overrides what it names, or with
`over: cluster.yaml` at its head what that file makes of it; `--set a.b=c` overrides all.
Unknown keys are refused by name.
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
# Laid over as a whole: what suits a laptop's engine would cripple another config's on a GPU, and a
# preset says itself what it is laid over.
WHOLE = frozenset({"engine", "environment", "systems"})

Positive = Annotated[int, Field(gt=0)]
# A socket takes no more than some billions.
Seconds = Annotated[float, Field(gt=0, le=10**6)]
Share = Annotated[float, Field(ge=0, le=1)]
SemanticType = Annotated[str, Field(pattern=r"^T\d{3}$")]
# Without scheme and port; `*` alone is every name.
HostName = Annotated[str, Field(pattern=r"^(\*|(\*\.)?[A-Za-z0-9._-]+)$", max_length=255)]


class Strict(BaseModel):
    """Base of all settings: immutable; unknown keys, infinities and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RaySettings(Strict):
    """The Ray started here when RAY_ADDRESS names none; `cpus: 0` means all there are."""

    cpus: Annotated[int, Field(ge=0)]
    object_store_mb: Annotated[int, Field(ge=128)]


def _path_or_url(value: Any) -> Any:
    """A path, or the URL of an object store as it is: a Path would make one slash of its two."""
    if not isinstance(value, str):
        return value
    path = local_path(value)
    if path is None:
        check_url(value)
    return path or value


class TokenVectorSettings(Strict):
    """How a shard keeps the token vectors of its passages, by which late interaction ranks them.

    Each is coded as `components` numbers of `bits` each, learnt from `training_passages`; `pool`
    tokens of a passage, on average, are kept as one.
    """

    components: Annotated[int, Field(ge=8, le=1024, multiple_of=8)]
    bits: Literal[1, 2, 4, 8]
    pool: Annotated[int, Field(ge=1, le=8)]
    training_passages: Positive


class IndexSettings(Strict):
    """`path` is a folder, or s3:// or gs://, of which copies of what is read lie in `cache`.

    `vectors` is the HNSW storage: flat float32, 16-bit floats, or 8-bit scalars.
    `token_vectors: none` keeps none, and late interaction then encodes passages at each question.
    `build_gpus` of a GPU are held while a shard's graph is built there by CAGRA; 0: on the CPU.
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
        """How token vectors are coded; None where none are kept."""
        return None if self.token_vectors == "none" else self.token_vectors

    @property
    def place(self) -> Place:
        """Where the index lies, told apart from the folder that a process works in."""
        if isinstance(self.path, str):
            return StoredPlace.at(self.path, self.cache.resolve())
        return self.path.resolve()


class SplitSettings(Strict):
    """`size` and `overlap` are characters, or tokens for the method `sections`."""

    method: Literal["characters", "sentences", "sections"]
    size: Positive
    overlap: Annotated[int, Field(ge=0)]


class EncoderSettings(Strict):
    """`actors` embed at once during a build, each with `gpus` GPUs or `threads` threads.

    `batch_size` is in texts; with `gpus` a batch holds as many tokens as that many of
    `max_tokens`, and two tables of passages are worked on at once.

    `adapter` names what `citeray train encoder` made; vectors are then those of both together.
    An adapter that `model` itself names is meant with the model that it is for.

    `runtime` runs the encoder and the reader on CPUs; "auto" takes the faster of the two.
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
    """`concepts` is a release of MeSH or UMLS, or "" for the corpus' own concepts alone.

    `lexicons` name files of other names of those concepts (`cluster.text.read_lexicon`).

    Of UMLS those of the semantic types `umls_types` are taken, besides what MeSH has.
    """

    concepts: str
    concepts_sha256: str = ""
    lexicons: tuple[str, ...] = ()
    umls_types: tuple[SemanticType, ...]
    abbreviation_min_citations: Positive


class RecogniserSettings(Strict):
    """How entities are found: by the index's vocabulary, or by a token classifier.

    `labels` are the entity types that the classifier keeps; none keeps all.
    """

    kind: Literal["vocabulary", "transformer"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    labels: tuple[str, ...] = ()


class RerankerSettings(Strict):
    """`model` is a cross-encoder's; late interaction uses the encoder's, with `adapter` on it.

    By the encoder as it is, passages of the index are scored by the token vectors that it keeps;
    those of other passages are kept in `cache_mb`.
    """

    kind: Literal["late-interaction", "cross-encoder"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    batch_size: Positive
    cache_mb: Annotated[int, Field(ge=0)] = 0

    @property
    def is_stage(self) -> bool:
        """Whether it loads a model of its own; late interaction by the encoder needs none."""
        return self.kind == "cross-encoder" or bool(self.adapter)


class ReaderSettings(Strict):
    """The model that reads the evidence: `model`, or `adapter` on its own base.

    It reads a citation in windows of `max_tokens`, question and text together. `calibration` is a
    file that `citeray train calibration` made for this reader; None is that of the shipped reader.
    A `zero-shot` reader has no model of its own: the reranker's cross-encoder gives the relevance
    and the NLI model of `support` the stance.
    """

    kind: Literal["trained", "zero-shot"] = "trained"
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    max_tokens: Annotated[int, Field(ge=64)]
    batch_size: Positive
    calibration: Path | None = None


class SupportSettings(Strict):
    """How a sentence is checked against evidence; below `threshold` it is dropped.

    A passage contradicts a sentence from a score of `contradiction` on.
    """

    kind: Literal["similarity", "nli"]
    model: str = ""
    sha256: str = ""
    adapter: str = ""
    threshold: Share
    contradiction: Share


class LanguageModelSettings(Strict):
    """A language model: where it is, and how its engine runs if it is served here.

    `vllm` serves `model` through Ray; `url` calls an OpenAI-compatible endpoint. One with
    `completion` has no chat form, as base models: it continues what it is sent.
    """

    kind: Literal["vllm", "url", "none"]
    model: str = ""
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
    """The writer, which does every part of the work that `models` leaves to it.

    `ideal_from` and `exact_from` say who answers where the preset leaves it open: the model, or
    the evidence's own sentences and names. `examples` is the folder of the few-shot memory, for
    presets that show examples.
    """

    examples: Path | None = None
    ideal_tokens: Positive
    exact_tokens: Positive
    ideal_from: WrittenBy
    exact_from: WrittenBy
    temperature: Annotated[float, Field(ge=0)]
    evidence_characters: Positive


class EntrezSettings(Strict):
    """PubMed online. A cached reply is good for `cache_days`; `deadline_s` bounds a whole call."""

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
    """One deployment: how many replicas, what each may hold, and when it is too late.

    Of `max_queued` requests more than its replicas hold each caller waits; -1: of any number.
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
    """A language model for a part of the work. `stage`: its replicas; else as `serve.llm`."""

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
    """Language models beside the writer's, which does the work of each role that names none.

    `rewriters` put questions into other words, in turn where one is written several times (paper
    003 has one pseudo-document from each of two); `ranker` orders passages (004: RankZephyr);
    `judge` judges answers for `evaluate` and `ablate`, and is not served with the endpoint.
    """

    rewriters: tuple[RoleSettings, ...] = ()
    ranker: RoleSettings | None = None
    judge: RoleSettings | None = None

    def roles(self) -> dict[str, RoleSettings]:
        """Each by its role's name: "rewriter-0", "rewriter-1", "ranker", "judge"."""
        found = {f"rewriter-{number}": role for number, role in enumerate(self.rewriters)}
        found |= {"ranker": self.ranker} if self.ranker else {}
        return found | ({"judge": self.judge} if self.judge else {})


class SpreadStageSettings(StageSettings):
    """A stage whose replicas are told where to start.

    A node has `per_node` at most, so that one that is lost takes no more; 0: no limit. They start
    only on Ray nodes with the label citeray/pool=`pool`; "": on any. Not for the language model:
    Ray puts its replicas where its GPUs are, and takes no limit.
    """

    per_node: Annotated[int, Field(ge=0, le=100)] = 0
    pool: Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")] = ""


class HttpSettings(Strict):
    """The API's door. Each gateway replica works on `at_once` questions while `waiting` more
    wait for their turn, up to `wait_s` seconds; what comes then is told to ask again later.

    `api_keys_env` names the environment variable with `name:key` pairs; where it is empty no
    key is asked for. Each key may ask `per_minute` times a minute (0: as often as it likes).
    A body holds `body_kb` KiB at most and arrives within `body_s` seconds. The server answers to
    addresses, to localhost, to `serve.host` and to the names in `hosts` (`*.NAME`: all under NAME).
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
    """Batches over HTTP: `concurrent` questions at a time, shared alike by API keys; `waiting`
    batches at most, of one key `waiting_per_key`. They lie in `folder`, ended ones for
    `keep_days`; on a cluster a shared folder.
    """

    folder: Path
    concurrent: Positive
    waiting: Positive
    waiting_per_key: Positive = 20
    keep_days: Annotated[float, Field(gt=0)]


def _day_or_none(value: Any) -> Any:
    # YAML reads a day without quotation marks as one.
    value = value.isoformat() if type(value) is date else value
    if value:
        as_day(value, "serve.until")
    return value


class ServeSettings(Strict):
    """Every `follow_s` seconds each replica looks for a newer version of the index; 0: never.

    With `as_of`, a source file's name, it serves the version that ends with it or before it, and
    stays there. No question finds what may have been published after `until`, a day such as
    2024-05-31; "" has no end. `systems` are presets beside the shipped ones, by name: what each
    is, or a file of it. Who stops the graph waits up to `drain_s` seconds for questions at work.
    Of `trace_share` of the requests traces are sent to OpenTelemetry.
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
    """All settings of a run, read once at the entry (`load_settings`)."""

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
    """The shipped settings that `origin` is laid over."""
    if not isinstance(name, str) or name not in _shipped():
        raise InputError(
            f"{origin}: over: {cut(str(name))} is none of the files shipped with CiteRay: "
            + ", ".join(_shipped())
        )
    return read_yaml(_config_text(name), name)


def _shipped() -> list[str]:
    return sorted(p.name for p in CONFIGS.iterdir() if p.name.endswith(".yaml"))


def load_settings(config: str | Path | None = None, overrides: Sequence[str] = ()) -> Settings:
    """Read `laptop.yaml`, lay `config` over it, then `overrides` (each `key=value`).

    A `config` may name another that it is laid over itself: `over: cluster.yaml`.

    Raises InputError naming every unknown key, with the nearest valid one, and every
    bad value.
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
    """`--set` where the first problem comes from one; else ""."""
    place = place_of(error.errors()[0])
    keys = [override.partition("=")[0] for override in overrides]
    return "--set" if any(f"{place}.".startswith(f"{key}.") for key in keys) else ""
