"""Access to object stores (s3:// and gs:// URLs) through Arrow's file systems.

    s3://bucket/prefix                                  AWS, or the store at AWS_ENDPOINT_URL
    s3://bucket/prefix?endpoint_override=host:9000&scheme=http&region=eu-west-1
    gs://bucket/prefix                                  Google Cloud Storage

Credentials come only from the environment (such as AWS_ACCESS_KEY_ID or
GOOGLE_APPLICATION_CREDENTIALS), so that stored and printed URLs contain no secrets.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from fsspec.utils import glob_translate
from pyarrow import fs

from cluster.errors import InputError, StorageError

_OPTIONS = {
    "s3": {"endpoint_override", "scheme", "region"},
    "gs": {"endpoint_override", "scheme", "retry_limit_seconds"},
}
_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*)://", re.ASCII)
# Arrow's message at the first read of a gs:// object that could not be opened.
_CLOSED = "I/O operation on closed file"
_GLOB = re.compile(r"[*?\[]")
_GOOGLE_STATUS = re.compile(
    r"(?:\[Errno \d+\] )?google::cloud::Status\((.*?) error_info=.*", re.DOTALL
)
# Large enough to stream a file in few requests, and small compared with a parser's memory.
_BUFFER_BYTES = 1 << 20
# A request to an S3 store times out after about a minute: TRIES times REQUEST_S seconds without
# a byte, or CONNECT_S without a connection. With the AWS SDK's defaults it takes five minutes.
REQUEST_S = 15.0
CONNECT_S = 10.0
TRIES = 4


def is_store(name: str) -> bool:
    """Return whether `name` is the URL of a location in an object store."""
    return name.startswith(tuple(f"{scheme}://" for scheme in _OPTIONS))


def open_store(url: str) -> tuple[Any, str]:
    """Return Arrow's file system for `url` and the path in it; plain paths are local.

    Sends no request to the store. Raises InputError for other schemes, unknown options, and
    credentials in the URL.
    """
    found = local_path(url)
    if found is not None:
        return fs.LocalFileSystem(), str(found.absolute())
    parts = check_url(url)
    path = (parts.netloc + parts.path).rstrip("/")
    return _file_system(parts.scheme, parts.netloc, _query(url)), path


def local_path(name: str) -> Path | None:
    """Return the local path for a plain path or a file:// URL; None for any other URL."""
    match = _URL.match(name)
    if match is None:
        return Path(name)
    return Path(unquote(urlsplit(name).path)) if match["scheme"] == "file" else None


def check_url(url: str) -> SplitResult:
    """Return the parts of a store's URL; sends no request. Raises the errors of `open_store`."""
    parts = urlsplit(url)
    if not is_store(url):
        raise InputError(
            f"{url}: {parts.scheme}:// is not supported; use a path, file://, s3:// or gs://"
        )
    if "@" in parts.netloc:
        host = parts.netloc.rpartition("@")[2]
        raise InputError(
            f"{parts.scheme}://{host}{parts.path}: a URL may hold no credentials; "
            "set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not parts.netloc:
        raise InputError(f"{url}: does not name a bucket; write {parts.scheme}://bucket/prefix")
    if unknown := sorted(parse_qs(parts.query).keys() - _OPTIONS[parts.scheme]):
        known = ", ".join(sorted(_OPTIONS[parts.scheme]))
        raise InputError(
            f"{parts.scheme}://{parts.netloc}{parts.path}: unknown option "
            f"{', '.join(unknown)}; there are: {known}"
        )
    return parts


def store_options(url: str) -> dict[str, str]:
    """Return the URL's own options, and for S3 the endpoint and region from the environment."""
    parts = urlsplit(url)
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.scheme == "gs":
        return given
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in given:
        where = urlsplit(endpoint)
        given |= {"endpoint_override": where.netloc or endpoint, "scheme": where.scheme or "https"}
    if "endpoint_override" in given:
        # Otherwise the AWS SDK waits seconds for a metadata service that may not exist.
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        given.setdefault("region", region or "us-east-1")
    return given


def _query(url: str) -> str:
    """Return the options of the store as a URL query."""
    given = store_options(url)
    if urlsplit(url).scheme == "gs":
        given.setdefault("retry_limit_seconds", "60")  # otherwise 15 minutes for a wrong bucket
    return urlencode(given)


@lru_cache(maxsize=32)
def _file_system(scheme: str, bucket: str, query: str) -> Any:
    try:
        if scheme == "s3":
            return _s3(bucket, dict(parse_qsl(query)))
        return fs.FileSystem.from_uri(urlunsplit((scheme, bucket, "", query, "")))[0]
    except (OSError, ValueError) as error:
        raise InputError(
            f"{scheme}://{bucket}: could not be opened ({error}); check the bucket's name and "
            "the endpoint"
        ) from error


def _s3(bucket: str, options: Mapping[str, str]) -> Any:
    """Return Arrow's S3 file system; `from_uri` does not accept timeouts."""
    return fs.S3FileSystem(
        region=options.get("region") or fs.resolve_s3_region(bucket),
        endpoint_override=options.get("endpoint_override"),
        scheme=options.get("scheme", "https"),
        request_timeout=REQUEST_S,
        connect_timeout=CONNECT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        allow_delayed_open=True,  # otherwise a small object costs three requests
    )


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """Size and modification time as in `Path.stat`; an object's time is in whole seconds."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One object, which is read like a Path, with `name`, `stat()` and `open()`."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the URL's path, without its query."""
        return PurePosixPath(urlsplit(self.url).path).name

    def stat(self) -> StoredFacts:
        """Return size and time. Raises FileNotFoundError, or OSError if the store fails."""
        filesystem, path = open_store(self.url)
        found = filesystem.get_file_info(path)
        if found.type != fs.FileType.File:
            raise FileNotFoundError(f"{self.url}: there is no such object")
        return StoredFacts(found.size, found.mtime_ns or 0)

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """Return a stream of the object's bytes. Raises the errors of `stat`."""
        if mode != "rb":
            raise ValueError(f"{self.url}: objects can only be read, not opened with mode {mode!r}")
        filesystem, path = open_store(self.url)
        return io.BufferedReader(filesystem.open_input_file(path), _BUFFER_BYTES)


File: TypeAlias = Path | StoredFile


def named_file(name: str) -> File:
    """Return the file whose `str` is `name`: a local path or the URL of an object."""
    return StoredFile(name) if is_store(name) else Path(name)


def beside(file: File, suffix: str) -> File:
    """Return the file with `suffix`, such as `.md5`, added to its name; it may not exist."""
    if isinstance(file, Path):
        return file.with_name(file.name + suffix)
    parts = urlsplit(file.url)
    return StoredFile(urlunsplit(parts._replace(path=parts.path + suffix)))


def list_folder(url: str) -> list[StoredFile]:
    """Return the objects directly in a folder of a store, sorted; none if it does not exist.

    Raises InputError if the store refuses or cannot be reached.
    """
    filesystem, path = open_store(url)
    with asking(url):
        found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return _stored(url, [f.path for f in found if f.type == fs.FileType.File])


def glob_store(url: str) -> list[StoredFile]:
    """Return the objects that match a glob (*, **, [ab]) in a URL's path, sorted.

    Raises InputError like `list_folder`.
    """
    filesystem, path = open_store(url)
    # On gs:// only a recursive listing finds objects in folders without an object of their own.
    folder = _GLOB.split(path, maxsplit=1)[0].rpartition("/")[0]
    with asking(url):
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        found = filesystem.get_file_info(selector)
    matches = re.compile(glob_translate(path)).match
    paths = (f.path for f in found if f.type == fs.FileType.File)
    return _stored(url, filter(matches, paths))


def is_stored(url: str) -> bool:
    """Return whether an object with this exact URL exists. Raises the errors of `list_folder`."""
    filesystem, path = open_store(url)
    with asking(url):
        return bool(filesystem.get_file_info(path).type == fs.FileType.File)


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Raise InputError if reading the store at `url` fails within the block."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and _CLOSED not in str(error):
            raise
        raise InputError(
            f"{url}: the store cannot be read ({_short_message(error)}); check the bucket, the "
            "endpoint and the credentials in the environment, and run the same command again"
        ) from error


@contextmanager
def writing(url: str) -> Iterator[None]:
    """Raise StorageError if writing to the store at `url` fails within the block."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{url}: the store cannot be written ({_short_message(error)}); check the bucket, the "
            "endpoint, and that the credentials in the environment may write there, and run the "
            "same command again"
        ) from error


def _short_message(error: Exception) -> str:
    """Return the error message without the details that Google's client adds."""
    return _GOOGLE_STATUS.sub(r"\1", str(error))


def _stored(url: str, paths: Iterable[str]) -> list[StoredFile]:
    parts = urlsplit(url)
    return [
        StoredFile(urlunsplit((parts.scheme, *path.split("/", 1), parts.query, "")))
        for path in sorted(paths)
    ]


def join_url(url: str, name: str) -> str:
    """Append `name` to the path of the folder `url`, before its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
