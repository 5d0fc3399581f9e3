from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import InputError
from cluster.index.vectors import empty_index, save
from cluster.settings.limits import questions_at_once
from cluster.settings.settings import load_settings
from planning.emit import config_yaml
from planning.estimate_build import vector_bytes
from planning.measure.coefficients import SHIPPED, read_coefficients
from planning.measure.fit import Line
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from tests.planning.some_coefficients import GPU, coefficients, searches

pytestmark = pytest.mark.model

# A cross-encoder is a separate stage.
CROSS = ["reranker.kind=cross-encoder", "reranker.model=file:cross"]
SETTINGS = load_settings(overrides=CROSS)
ASK = Ask(citations=38_000_000, qps=50, p95_s=2.0)


def plan(found: object = None, **changes: object) -> Plan:
    ask = replace(ASK, **changes)  # type: ignore[arg-type]
    return make_plan(found or coefficients(), SETTINGS, ask)  # type: ignore[arg-type]


def test_fewest_shards_that_a_node_can_build_are_chosen() -> None:
    made = plan(node_memory=64_000_000_000, node_cpus=16)
    needed = {f.name: f.value for f in made.memory}
    assert 16 * needed["shard task"] <= 0.8 * 64e9
    fewer = plan(node_memory=64_000_000_000, node_cpus=16, shards=made.size.shards // 2)
    assert fewer.problems[0].startswith("16 shard tasks at once: ")


@given(
    citations=st.integers(10_000, 60_000_000), more=st.floats(1, 20), qps=st.floats(0.1, 300),
    p95=st.floats(0.2, 5),
)  # fmt: skip
@settings(max_examples=10)
def test_more_citations_never_need_fewer_resources(
    citations: int, more: float, qps: float, p95: float
) -> None:
    small, large = (
        plan(citations=n, qps=qps, p95_s=p95) for n in (citations, int(citations * more))
    )
    if large.problems:
        return  # an infeasible plan has no sizes
    assert small.size.shards <= large.size.shards
    for before, after in zip(small.disk, large.disk, strict=True):
        assert before.value <= after.value
    # Compare total memory and cores; few large shards may need more nodes than small ones.
    memory, cores = (
        [getattr(p.groups[0], of) * p.groups[0].nodes for p in (small, large)]
        for of in ("memory_bytes", "cpus")
    )
    assert memory[0] <= memory[1] * 1.0001
    assert cores[0] <= cores[1]


@given(qps=st.floats(0.1, 300), p95=st.floats(0.5, 5))
@settings(max_examples=25)
def test_doubled_load_never_needs_fewer_cores(qps: float, p95: float) -> None:
    one, two = (sum(s.cores for s in plan(qps=q, p95_s=p95).serving.stages) for q in (qps, 2 * qps))
    assert one <= two


def test_min_replicas_of_the_settings_are_planned() -> None:
    twice = load_settings(overrides=["serve.shard.min_replicas=2", "serve.encoder.min_replicas=3"])
    ask = replace(ASK, qps=0.01)
    alone, kept = (make_plan(coefficients(), s, ask) for s in (SETTINGS, twice))
    planned = [{s.name: s.replicas for s in made.serving.stages} for made in (alone, kept)]
    assert [found["shard"] for found in planned] == [1, 2]
    assert planned[1]["encoder"] == 3
    one, two = (
        next(g.nodes * g.memory_bytes for g in made.groups if g.name == "retrieval")
        for made in (alone, kept)
    )
    assert two == pytest.approx(2 * one, rel=0.1)


def test_stored_token_vectors_need_no_reranker_stage() -> None:
    stored = make_plan(coefficients(), load_settings(), ASK)
    assert stored.serving.stage("reranker") is None
    none = load_settings(overrides=["index.token_vectors=none"])
    assert make_plan(coefficients(), none, ASK).serving.stage("reranker") is not None


def test_problem_names_the_stage_or_process() -> None:
    kept = plan().serving
    assert kept.p95.value == pytest.approx(sum(s.seconds for s in kept.stages))
    assert kept.p95.value <= 2.0
    made = plan(p95_s=0.1)
    assert made.problems[0].startswith("p95 of 0.1 s cannot be met")
    assert "of which reranker 0.25 s" in made.problems[0]
    problems = [
        p for p in plan(node_memory=700_000_000).problems if p.startswith("one vocabulary task")
    ]
    assert problems[0].startswith("one vocabulary task: 623 MB, more than the 560 MB")


def test_shards_are_split_further_to_meet_the_percentile() -> None:
    slow = coefficients(searches=searches(Line(base=0.0, slope=1e-6)))
    made = plan(slow, p95_s=1.3)
    assert made.problems == ()
    assert made.size.shards > plan(slow, p95_s=60).size.shards


def test_costs_require_prices_and_gpu_hours_a_measured_gpu() -> None:
    assert plan().costs == ()
    costs = {f.name: f.value for f in plan(node_price=2.0).costs}
    nodes = sum(g.nodes for g in plan().groups if g.name != "build")
    assert costs["serving, a month"] == pytest.approx(730 * 2.0 * nodes)
    assert costs["a question, at 50 per second"] == pytest.approx(2.0 * nodes / (3600 * 50))
    assert plan().gpu_hours is None
    found, on_gpus = coefficients(), load_settings(overrides=[*CROSS, "encoder.gpus=1"])
    machine = found.machine.model_copy(update={"device": "cuda"})
    for own, known in ((found, False), (found.model_copy(update={"machine": machine}), True)):
        made = make_plan(own, on_gpus, ASK)
        assert made.gpu_hours is not None
        assert made.gpu_hours.known == made.build.known == known
    assert made.gpu_hours.value == pytest.approx(2 * 38e6 * 0.004 / 3600)


def test_graphs_on_gpus_are_built_in_waves() -> None:
    found = coefficients().model_copy(update={"gpu": GPU})
    settings = load_settings("cluster.yaml")
    made = make_plan(found, settings, replace(ASK, nodes=4, shards=16))
    index = next(f for f in made.phases if f.name == "index")
    # 4 GPUs build 16 shards of 4.75M passages in 4 waves.
    rest = 38e6 / 16 * (2e-4 + 5e-4 + 1e-4)
    assert index.value == pytest.approx(4 * (rest + 76e6 / 16 / 1e5))
    half = make_plan(found, settings, replace(ASK, nodes=4, gpu_nodes=2, shards=16))
    assert next(f for f in half.phases if f.name == "index").value == pytest.approx(2 * index.value)


def test_documented_growth_of_a_build_follows_from_the_shipped_coefficients() -> None:
    found = read_coefficients(SHIPPED)
    text = (Path(__file__).resolve().parents[2] / "docs/cluster.md").read_text()
    each, costs = found.corpus.passages_per_citation, found.building.hnsw_core_seconds_per_passage
    first = costs.mean(100_000 * each / 4)
    for citations in (100_000, 200_000, 1_000_000):
        passages = citations * each / 4
        mean = costs.mean(passages)
        row = f"| {citations:,} | {passages:,.0f} | {mean * 1e3:.2f} ms | {mean / first:.1f} |"
        assert row in text

    def phases(citations: int, shards: int) -> dict[str, float]:
        ask = replace(ASK, citations=citations, shards=shards, nodes=1, node_cpus=2, qps=1)
        made = make_plan(found, load_settings(overrides=["index.token_vectors=none"]), ask)
        return {f.name: f.value for f in (*made.phases, made.build)}

    small, few, many = phases(100_000, 4), phases(1_000_000, 4), phases(1_000_000, 40)
    assert many["index"] / small["index"] == pytest.approx(10, rel=0.03)
    assert few["index"] / small["index"] == pytest.approx(20, rel=0.03)
    assert few["build"] / small["build"] / 10 == pytest.approx(1.03, rel=0.005)


def test_graphs_that_exceed_the_gpu_are_a_problem_that_names_enough_shards() -> None:
    settings = load_settings("cluster.yaml")
    asked = replace(ASK, nodes=4, shards=16, gpu_memory=6_000_000_000)
    made = make_plan(coefficients(), settings, asked)
    # 4.75M passages of 644 bytes each and 4 GiB.
    (problem,) = (p for p in made.problems if "GPU" in p)
    assert problem == (
        "graphs of one GPU: up to 7.35 GB, more than the 6 GB that it has, so CPUs would build "
        "them; at least 29 shards fit"
    )
    for shards, fits in ((28, False), (29, True)):
        plan = make_plan(coefficients(), settings, replace(asked, shards=shards))
        assert any("GPU" in p for p in plan.problems) != fits
    # The plan chooses enough shards by itself, and reads the memory from the measured GPU.
    gpu = GPU.model_copy(update={"memory_bytes": 6_000_000_000})
    found = coefficients().model_copy(update={"gpu": gpu})
    chosen = make_plan(found, settings, replace(asked, shards=None, gpu_memory=None))
    assert chosen.size.shards == 32
    assert chosen.unknown == ()


def test_several_graphs_at_once_share_the_memory_of_a_gpu() -> None:
    half = load_settings("cluster.yaml", ["index.build_gpus=0.5", "index.build_threads=8"])
    asked = replace(ASK, nodes=4, shards=16, node_cpus=16)
    for cpus, graphs in ((16, 2), (15, 1)):
        made = make_plan(coefficients(), half, replace(asked, node_cpus=cpus))
        memory = next(f for f in made.memory if f.name == "graphs of one GPU")
        assert memory.inputs["graphs_at_once"] == graphs
    small = make_plan(coefficients(), half, replace(asked, gpu_memory=4_000_000_000))
    assert any("no number of shards fits" in p for p in small.problems)


def test_vector_bytes_equal_those_of_a_faiss_index(tmp_path: Path) -> None:
    index = load_settings("cluster.yaml").index
    vectors = np.random.default_rng(0).standard_normal((3000, 768), np.float32)
    graph = empty_index(index.vectors, 768, index.hnsw_m, 40)
    graph.train(vectors)
    graph.add(vectors)
    save(graph, tmp_path / "vectors.faiss")
    built = (tmp_path / "vectors.faiss").stat().st_size
    assert vector_bytes(index, 768) * 3000 == pytest.approx(built, rel=0.03)


def test_retrieval_nodes_have_room_for_token_vectors() -> None:
    ask = replace(ASK, qps=0.01, shards=64)
    without = load_settings(overrides=[*CROSS, "index.token_vectors=none"])
    plans = [make_plan(coefficients(), settings, ask) for settings in (SETTINGS, without)]
    stored, none = (next(g for g in p.groups if g.name == "retrieval") for p in plans)
    # 100 tokens of 16 bytes in each of 76M passages, for the current and the next version.
    more = stored.disk_bytes * stored.nodes - none.disk_bytes * none.nodes
    assert more == pytest.approx(2 * 76e6 * 1600, rel=0.1)


def test_more_shards_cost_the_gateways_more() -> None:
    few, many = (plan(shards=shards).serving.stage("gateway") for shards in (32, 128))
    assert few is not None
    assert many is not None
    assert many.service.value > 2 * few.service.value
    assert many.replicas >= few.replicas


def test_unknown_dimensions_are_refused() -> None:
    other = load_settings(overrides=["encoder.model=file:other"])
    with pytest.raises(InputError, match=r"--set encoder\.dimensions=N"):
        make_plan(coefficients(), other, ASK)


@pytest.mark.parametrize("config", ["laptop.yaml", "cluster.yaml", "gpu-node.yaml"])
def test_emitted_settings_load_with_the_planned_values(config: str, tmp_path: Path) -> None:
    before = load_settings(config, CROSS)
    made = make_plan(coefficients().model_copy(update={"gpu": GPU}), before, ASK)
    file = tmp_path / "planned.yaml"
    file.write_text(config_yaml(before, made))
    loaded = load_settings(file)
    assert (loaded.index.shards, loaded.encoder.actors) == (made.size.shards, made.fleet.encoders)
    reranker = made.serving.stage("reranker")
    assert reranker is not None
    assert loaded.serve.reranker.min_replicas == reranker.replicas
    assert loaded.serve.reranker.batch == reranker.batch
    # The gateways admit what the load has in flight.
    gateways = loaded.serve.gateway.min_replicas
    assert gateways * questions_at_once(loaded) >= ASK.qps * made.serving.p95.value
    assert loaded.llm == before.llm
    for name in ("encoder", "shard", "reranker", "expander"):
        stage = getattr(loaded.serve, name)
        assert stage.max_replicas >= stage.min_replicas


def test_batches_are_used_if_the_percentile_allows() -> None:
    patient, hurried = plan(p95_s=9.0), plan(p95_s=0.6)
    assert patient.serving.stage("reranker").batch == 8  # type: ignore[union-attr]
    assert hurried.serving.stage("reranker").batch == 1  # type: ignore[union-attr]
