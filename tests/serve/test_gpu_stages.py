from pathlib import Path

import pytest
import torch

from cluster.models.tag_entities import EntityTagger
from cluster.settings.settings import Settings, load_settings
from cluster.settings.stages.serving import StageSettings
from serve.app import stage_options
from serve.graph.load_stages import classifier_runs, load_reranker
from serve.search.rerank_passages import CrossEncoderReranker
from tests.tiny_models import make_tiny_cross_encoder, make_tiny_tagger

pytestmark = pytest.mark.model


def stages(settings: Settings) -> dict[str, StageSettings]:
    found = {name: getattr(settings.serve, name) for name in type(settings.serve).model_fields}
    return {name: stage for name, stage in found.items() if isinstance(stage, StageSettings)}


WITH_A_MODEL = {"encoder", "reranker", "writer", "llm"}


@pytest.mark.parametrize(
    ("config", "chosen"),
    [("gpu-node.yaml", WITH_A_MODEL), ("cluster.yaml", {*WITH_A_MODEL, "expander"})],
)
def test_only_stages_with_a_model_request_a_gpu(config: str, chosen: set[str]) -> None:
    settings = load_settings(config)
    assert settings.encoder.device == "cuda"
    asked = {name for name, stage in stages(settings).items() if stage.gpus > 0}
    assert asked == chosen
    for name in asked - {"llm"}:
        options = stage_options(settings, name)["ray_actor_options"]
        assert options["num_gpus"] == getattr(settings.serve, name).gpus


def test_one_gpu_is_enough_for_serving_and_updating() -> None:
    settings = load_settings("gpu-node.yaml")
    serving = sum(stage.gpus * stage.max_replicas for stage in stages(settings).values())
    encoder = settings.encoder
    updating = max(encoder.gpus * encoder.actors, settings.index.build_gpus)
    assert serving + updating <= 1 + 1e-9


def test_classifiers_use_the_encoder_dtype_only_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert classifier_runs(load_settings("gpu-node.yaml")) == ("cuda", "bfloat16")
    on_cpu = ["encoder.device=cpu", "encoder.dtype=bfloat16"]
    assert classifier_runs(load_settings(overrides=on_cpu)) == ("cpu", "float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_cross_encoder_uses_the_encoder_dtype(tmp_path: Path, dtype: str) -> None:
    folder = make_tiny_cross_encoder(tmp_path)
    chosen = ["reranker.kind=cross-encoder", f"reranker.model=file:{folder}"]
    settings = load_settings(overrides=[*chosen, "encoder.device=cpu", f"encoder.dtype={dtype}"])
    reranker = load_reranker(settings)
    assert isinstance(reranker, CrossEncoderReranker)
    assert {p.dtype for p in reranker._model.parameters()} == {getattr(torch, dtype)}


def test_tagger_uses_the_given_dtype(tmp_path: Path) -> None:
    folder = make_tiny_tagger(tmp_path, ["fever"])
    plain, short = (EntityTagger.load(folder, "cpu", kind) for kind in ("float32", "bfloat16"))
    assert short._model.dtype == torch.bfloat16
    assert [e.text for e in short.entities("fever")] == [e.text for e in plain.entities("fever")]


def test_per_node_limits_replicas_on_a_node() -> None:
    assert "max_replicas_per_node" not in stage_options(load_settings(), "gateway")
    settings = load_settings("cluster.yaml")
    for name in ("gateway", "shard"):
        assert stage_options(settings, name)["max_replicas_per_node"] == 1
        assert getattr(settings.serve, name).min_replicas > 1
