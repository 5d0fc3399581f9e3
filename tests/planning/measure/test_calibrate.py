"""A real calibration on a few hundred citations with a tiny encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench_plan import compare
from cluster.errors import InputError
from cluster.settings.settings import Settings, load_settings
from pipelines.sample.generate_citations import write_generated
from planning.estimate_build import Size, artefact_bytes
from planning.measure.calibrate import Effort, measure_all, small_build
from planning.measure.coefficients import Coefficients, read_coefficients, write_coefficients
from planning.measure.sample_corpus import read_sample
from planning.measure.watch_build import BuildMeasured
from planning.place_workers import Ask
from planning.plan import make_plan
from tests.serve.chat_endpoint import chat_endpoint
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

EFFORT = Effort(small=150, large=400, passages=60, questions=5, repeats=1)
BUILT = 300


def small(folder: Path, *more: str) -> Settings:
    return load_settings(
        overrides=[
            f"encoder.model=file:{make_tiny_encoder(folder)}",
            "encoder.max_tokens=64",
            "encoder.dtype=float32",
            "encoder.threads=1",
            "index.build_threads=1",
            "vocabulary.concepts=''",
            "ray.object_store_mb=128",
            "serve.reranker.batch=2",
            "serve.encoder.batch=4",
            *more,
        ]
    )


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return small(tmp_path_factory.mktemp("models"), "llm.kind=none")


@pytest.fixture(scope="module")
def built(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> BuildMeasured:
    return small_build(settings, BUILT, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def calibrated(settings: Settings, built: BuildMeasured) -> Coefficients:
    with chat_endpoint("Yes.") as endpoint:
        update = {"kind": "url", "url": endpoint.url, "max_concurrent": 3}
        llm = settings.llm.model_copy(update=update)
        with_llm = settings.model_copy(update={"llm": llm})
        return measure_all(with_llm, built, lambda what: None, (), EFFORT)


def test_all_times_are_measured(calibrated: Coefficients) -> None:
    found = calibrated.building.model_dump()
    some = {"records_core_seconds_per_citation", "hnsw_core_seconds_per_passage"}
    for name in set(found) - some - {"publish_core_seconds"}:
        assert found[name] > 0, name


def test_calibration_survives_a_round_trip_and_gives_a_plan(
    calibrated: Coefficients, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "calibration.json"
    write_coefficients(calibrated, file)
    assert read_coefficients(file) == calibrated
    made = make_plan(calibrated, settings, Ask(citations=1_000_000, qps=1, p95_s=60))
    assert made.build.value > calibrated.building.fixed_seconds
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_bytes_are_predicted_for_another_size(
    calibrated: Coefficients, settings: Settings, built: BuildMeasured
) -> None:
    size = Size.of(calibrated, settings, BUILT, 2)
    predicted = {f.name: f.value for f in artefact_bytes(calibrated, size)}
    for name in ("records", "vectors", "token vectors", "staging"):
        assert predicted[name] == pytest.approx(built.bytes[name], rel=0.15), name
    assert size.passages == pytest.approx(built.manifest.passages, rel=0.15)


def test_predictions_are_compared_with_a_build(
    calibrated: Coefficients, settings: Settings, built: BuildMeasured
) -> None:
    rows = {figure.name: (figure, value) for figure, value in compare(calibrated, settings, built)}
    for name in ("all", "BM25", "memory of encode worker"):
        figure, measured = rows[name]
        assert figure.value > 0
        assert measured > 0


def test_given_sample_is_counted_fully_and_returned_partly(tmp_path: Path) -> None:
    kept, total = read_sample(write_generated(tmp_path, 30), 20)
    assert (len(kept), total) == (20, 30)
    (tmp_path / "few").mkdir()
    with pytest.raises(InputError, match="holds 5 citations, but calibration needs 400"):
        read_sample(write_generated(tmp_path / "few", 5), 400)


def test_invalid_calibration_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    for text, said in [
        ("{}", "format"),
        ("no json", "calibration"),
        ('{"format": 3}', "format: must be 5"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            read_coefficients(file)
        assert "--calibrate" in str(caught.value)
    with pytest.raises(InputError, match=r"nowhere\.json: cannot be read"):
        read_coefficients(tmp_path / "nowhere.json")
