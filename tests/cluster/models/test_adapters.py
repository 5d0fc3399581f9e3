from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cluster.errors import InputError
from cluster.models.adapters import model_folder, plain_model, weights_checksum
from cluster.models.encoder import Encoder
from cluster.models.store import ModelStore, checksum
from cluster.settings.settings import load_settings
from cluster.settings.stages.encoder import EncoderSettings
from tests.tiny_adapter import adapted_encoder, make_tiny_adapter
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

TEXTS = ["aspirin treats fever .", "the gene inhibits a protein ."]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_adapter(base, tmp_path_factory.mktemp("adapter") / "tuned")


def named(base: Path | None, adapter: Path | None) -> EncoderSettings:
    return load_settings().encoder.model_copy(
        update={
            "model": f"file:{base}" if base else "",
            "adapter": f"file:{adapter}" if adapter else "",
        }
    )


def test_merged_model_equals_model_with_adapter(
    base: Path, adapter: Path, store: ModelStore
) -> None:
    encoder, _ = adapted_encoder(base)
    wanted = encoder.encode(TEXTS)
    merged = Encoder(model_folder(named(base, adapter), store), dtype="float32").encode(TEXTS)
    plain = Encoder(base, dtype="float32").encode(TEXTS)
    assert np.allclose(merged, wanted, atol=1e-5)
    assert not np.allclose(merged, plain, atol=1e-2)


def test_adapter_may_be_trained_on_a_model_with_an_adapter(
    base: Path, adapter: Path, store: ModelStore, tmp_path: Path
) -> None:
    below = model_folder(named(base, adapter), store)
    upper = make_tiny_adapter(below, tmp_path / "upper", seed=3, base_name=f"file:{adapter}")
    wanted = Encoder(model_folder(named(below, upper), store), dtype="float32").encode(TEXTS)
    sha256 = weights_checksum(named(base, adapter), store)
    training = {"base": {"model": f"file:{adapter}", "sha256": sha256}}
    (upper / "training.json").write_text(json.dumps(training), encoding="utf-8")
    # By itself, on top of the adapter, and instead of the adapter that a preset names.
    for both in (named(None, upper), named(upper, None), named(adapter, upper)):
        merged = Encoder(model_folder(both, store), dtype="float32").encode(TEXTS)
        assert np.allclose(merged, wanted, atol=1e-5)
        assert weights_checksum(both, store) == weights_checksum(named(None, upper), store)
    assert plain_model(named(None, upper), store) == f"file:{base}"
    with pytest.raises(InputError, match=rf"trained for file:{adapter} .* another model"):
        model_folder(named(base, upper), store)
    # An adapter of the plain model replaces both.
    other = make_tiny_adapter(base, tmp_path / "other", seed=4)
    alone = Encoder(model_folder(named(base, other), store), dtype="float32").encode(TEXTS)
    replaced = Encoder(model_folder(named(upper, other), store), dtype="float32").encode(TEXTS)
    assert np.allclose(replaced, alone, atol=1e-5)
    assert not np.allclose(merged, alone, atol=1e-2)


def test_checksum_includes_the_adapter(
    base: Path, adapter: Path, store: ModelStore, tmp_path: Path
) -> None:
    other = make_tiny_adapter(base, tmp_path / "other", seed=2)
    sums = {weights_checksum(named(base, a), store) for a in (None, adapter, other)}
    assert len(sums) == 3
    assert model_folder(named(base, None), store) == base
    assert weights_checksum(named(base, None), store) == checksum(base)


def test_adapter_of_another_model_is_rejected(
    base: Path, store: ModelStore, tmp_path: Path
) -> None:
    adapter = make_tiny_adapter(base, tmp_path / "trained")
    training = {"base": {"model": "pypi:other==1/model", "sha256": "0" * 64}}
    (adapter / "training.json").write_text(json.dumps(training), encoding="utf-8")
    with pytest.raises(InputError, match=r"trained for pypi:other==1/model \(0{12}\)"):
        model_folder(named(base, adapter), store)


def test_incompatible_adapter_leaves_no_files(
    base: Path, store: ModelStore, tmp_path: Path
) -> None:
    adapter = make_tiny_adapter(base, tmp_path / "wide")
    config = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"r": 3}), encoding="utf-8")
    with pytest.raises(InputError, match="does not fit"):
        model_folder(named(base, adapter), store)
    assert not list((store.root / "adapted").rglob("config.json"))


def test_interrupted_merge_is_repeated(base: Path, adapter: Path, store: ModelStore) -> None:
    folder = model_folder(named(base, adapter), store)
    folder.rename(folder.with_name(f".{folder.name}.partial"))
    (folder.with_name(f".{folder.name}.partial") / "model.safetensors").unlink()
    assert (model_folder(named(base, adapter), store) / "config.json").is_file()


def test_adapter_alone_uses_its_base_model(base: Path, adapter: Path, store: ModelStore) -> None:
    both = named(base, adapter)
    for alone in (named(adapter, None), named(None, adapter)):
        assert model_folder(alone, store) == model_folder(both, store)
        assert weights_checksum(alone, store) == weights_checksum(both, store)
        assert plain_model(alone, store) == plain_model(both, store) == f"file:{base}"
