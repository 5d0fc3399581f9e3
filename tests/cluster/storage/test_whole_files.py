import hashlib
from pathlib import Path

from cluster.storage.whole_files import published_atomically, sha256_of, write_atomically


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def test_sha256_of_files_is_computed_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert sha256_of(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    several_blocks = b"0123456789abcdef" * 200_000
    path.write_bytes(several_blocks)
    assert sha256_of(path) == hashlib.sha256(several_blocks).hexdigest()


def test_file_is_published_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/file"
    with published_atomically(path) as aside:
        aside.write_bytes(b"whole")
        assert not path.exists()
        assert aside.parent == path.parent
    write_atomically(path, path.read_bytes() + b", and more")
    assert path.read_bytes() == b"whole, and more"
    assert names(path.parent) == ["file"]


def test_concurrent_writers_use_separate_temporary_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with published_atomically(path) as first, published_atomically(path) as second:
        assert first != second
        first.write_bytes(b"first")
        second.write_bytes(b"second")
    assert path.read_bytes() == b"first"
