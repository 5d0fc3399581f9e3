"""Settings of the index and of splitting abstracts into passages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cluster.errors import InputError, cut
from cluster.settings.fields import Positive, Share, Strict
from cluster.storage.locations import Location, StoredLocation
from cluster.storage.object_store import check_url, local_path

# The longest name of a file in the file systems of Linux and macOS.
MAX_NAME_BYTES = 255


def _path_or_url(value: Any) -> Any:
    """Return a Path, or the URL of an object store as a string: a Path would merge its slashes."""
    if not isinstance(value, str):
        return value
    path = local_path(value)
    if path is None:
        check_url(value)
    return path or value


def _folder(path: Path) -> Path:
    """Return the absolute path; raise InputError if there can be no folder at it."""
    try:
        resolved = path.resolve()
        above = next(each for each in (resolved, *resolved.parents) if each.exists())
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "a loop of symbolic links"
        raise InputError(f"index.path {cut(str(path))}: {why}; name another folder") from None
    if not above.is_dir():
        raise InputError(f"index.path {path}: {above} is a file; name a folder")
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in resolved.parts):
        raise InputError(
            f"index.path {cut(str(path))}: a name of more than {MAX_NAME_BYTES} bytes; "
            "name another folder"
        )
    return resolved


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
    build_threads: Positive
    build_gpus: Annotated[float, Field(ge=0, le=1)] = 0

    @property
    def token_codec(self) -> TokenVectorSettings | None:
        """How token vectors are quantised; None if they are not stored."""
        return None if self.token_vectors == "none" else self.token_vectors

    @property
    def location(self) -> Location:
        """Location of the index, independent of the working directory."""
        if isinstance(self.path, str):
            return StoredLocation.at(self.path, self.cache.resolve())
        return _folder(self.path)


class SplitSettings(Strict):
    """How abstracts are split into passages.

    `size` and `overlap` are in characters, or in tokens for the method `sections`.
    """

    method: Literal["characters", "sentences", "sections"]
    size: Positive
    overlap: Annotated[int, Field(ge=0)]
