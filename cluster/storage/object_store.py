"""Object stores beside local folders: s3:// and gs:// by URL, through Arrow's file systems.

    s3://bucket/prefix                                  AWS, or the store at AWS_ENDPOINT_URL
    s3://bucket/prefix?endpoint_override=host:9000&scheme=http&region=eu-west-1
    gs://bucket/prefix                                  Google Cloud Storage

Credentials come from the environment alone (AWS_ACCESS_KEY_ID and its like, or
GOOGLE_APPLICATION_CREDENTIALS), so that no URL that is stored or printed holds a secret.
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
# What Arrow says of a gs:// object that could not be opened, at the first read of it.
_CLOSED = "I/O operation on closed file"
_GLOB = re.compile(r"[*?\[]")
_GOOGLE_STATUS = re.compile(
    r"(?:\[Errno \d+\] )?google::cloud::Status\((.*?) error_info=.*", re.DOTALL
)
# Enough that a file is streamed in few requests, and small beside what a parser holds.
_BUFFER_BYTES = 1 << 20
# An S3 store that does not answer is given up after about a minute: TRIES times REQUEST_S seconds
# without a byte, or CONNECT_S without a connection. The AWS SDK's own values make it five.
REQUEST_S = 15.0
CONNECT_S = 10.0
TRIES = 4


def is_store(name: str) -> bool:
    """Whether `name` is the URL of a place in an object store."""
    return name.startswith(tuple(f"{scheme}://" for scheme in _OPTIONS))


def open_store(url: str) -> tuple[Any, str]:
    """Arrow's file system for `url`, and the path in it; a plain path is this machine's.

    Nothing is asked of the store yet. Raises InputError for any other scheme, for an
    option that is not known, and for credentials in the URL.
    """
    found = local_path(url)
    if found is not None:
        return fs.LocalFileSystem(), str(found.absolute())
    parts = check_url(url)
    path = (parts.netloc + parts.path).rstrip("/")
    return _file_system(parts.scheme, parts.netloc, _query(url)), path


def local_path(name: str) -> Path | None:
    """The path of this machine that `name` is, plain or file://; None for any other URL."""
    match = _URL.match(name)
    if match is None:
        return Path(name)
    return Path(unquote(urlsplit(name).path)) if match["scheme"] == "file" else None


def check_url(url: str) -> SplitResult:
    """The parts of a store's URL; asks nothing of the store. Raises InputError as open_store."""
    parts = urlsplit(url)
    if not is_store(url):
        raise InputError(
            f"{url}: {parts.scheme}:// is not read here; use a path, file://, s3:// or gs://"
        )
    if "@" in parts.netloc:
        place = parts.netloc.rpartition("@")[2]
        raise InputError(
            f"{parts.scheme}://{place}{parts.path}: a URL may hold no credentials; "
            "set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not parts.netloc:
        raise InputError(f"{url}: no bucket is named; write {parts.scheme}://bucket/prefix")
    if unknown := sorted(parse_qs(parts.query).keys() - _OPTIONS[parts.scheme]):
        known = ", ".join(sorted(_OPTIONS[parts.scheme]))
        raise InputError(
            f"{parts.scheme}://{parts.netloc}{parts.path}: no option is called "
            f"{', '.join(unknown)}; there are: {known}"
        )
    return parts


def store_options(url: str) -> dict[str, str]:
    """The URL's own options, and of S3 the endpoint and region from the environment."""
    parts = urlsplit(url)
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if parts.scheme == "gs":
        return given
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in given:
        where = urlsplit(endpoint)
        given |= {"endpoint_override": where.netloc or endpoint, "scheme": where.scheme or "https"}
    if "endpoint_override" in given:
        # Or the AWS SDK asks the metadata service of a machine that has none, for seconds.
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        given.setdefault("region", region or "us-east-1")
    return given


def _query(url: str) -> str:
    """The options of the store as a URL's query."""
    given = store_options(url)
    if urlsplit(url).scheme == "gs":
        given.setdefault("retry_limit_seconds", "60")  # or a wrong bucket is tried for 15 minutes
    return urlencode(given)


@lru_cache(maxsize=32)
def _file_system(scheme: str, bucket: str, query: str) -> Any:
    try:
        if scheme == "s3":
            return _s3(bucket, dict(parse_qsl(query)))
        return fs.FileSystem.from_uri(urlunsplit((scheme, bucket, "", query, "")))[0]
    except (OSError, ValueError) as error:
        raise InputError(
            f"{scheme}://{bucket}: cannot be opened ({error}); check the bucket's name and "
            "the endpoint"
        ) from error


def _s3(bucket: str, options: Mapping[str, str]) -> Any:
    """Arrow's client of S3; `from_uri` would take no timeouts."""
    return fs.S3FileSystem(
        region=options.get("region") or fs.resolve_s3_region(bucket),
        endpoint_override=options.get("endpoint_override"),
        scheme=options.get("scheme", "https"),
        request_timeout=REQUEST_S,
        connect_timeout=CONNECT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        allow_delayed_open=True,  # or a small object costs three requests
    )


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """What Path.stat says of a file, under the same names; an object's time is in whole seconds."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One object, read as a Path is read: by `name`, `stat()` and `open()`."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of the URL's path, without its query."""
        return PurePosixPath(urlsplit(self.url).path).name

    def stat(self) -> StoredFacts:
        """Raises FileNotFoundError if there is no such object, OSError if the store fails."""
        filesystem, path = open_store(self.url)
        found = filesystem.get_file_info(path)
        if found.type != fs.FileType.File:
            raise FileNotFoundError(f"{self.url}: there is no such object")
        return StoredFacts(found.size, found.mtime_ns or 0)

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """The object's bytes, streamed; raises as `stat` does."""
        if mode != "rb":
            raise ValueError(f"{self.url}: an object is opened to be read, not with mode {mode!r}")
        filesystem, path = open_store(self.url)
        return io.BufferedReader(filesystem.open_input_file(path), _BUFFER_BYTES)


File: TypeAlias = Path | StoredFile


def named_file(name: str) -> File:
    """The file that `str` of it named."""
    return StoredFile(name) if is_store(name) else Path(name)


def beside(file: File, suffix: str) -> File:
    """The file of that name and `suffix` in the same folder, such as `.md5`; it may not exist."""
    if isinstance(file, Path):
        return file.with_name(file.name + suffix)
    parts = urlsplit(file.url)
    return StoredFile(urlunsplit(parts._replace(path=parts.path + suffix)))


def list_folder(url: str) -> list[StoredFile]:
    """The objects right in a folder of a store, sorted; none where there is no such folder.

    Raises InputError where the store refuses or cannot be reached.
    """
    filesystem, path = open_store(url)
    with asking(url):
        found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return _stored(url, [f.path for f in found if f.type == fs.FileType.File])


def glob_store(url: str) -> list[StoredFile]:
    """The objects that a glob (*, **, [ab]) in a URL's path matches, sorted; raises the same."""
    filesystem, path = open_store(url)
    # Of gs:// only a recursive listing names what lies in folders that were never made.
    folder = _GLOB.split(path, maxsplit=1)[0].rpartition("/")[0]
    with asking(url):
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        found = filesystem.get_file_info(selector)
    matches = re.compile(glob_translate(path)).match
    paths = (f.path for f in found if f.type == fs.FileType.File)
    return _stored(url, filter(matches, paths))


def is_stored(url: str) -> bool:
    """Whether there is an object of this very URL; raises as list_folder does."""
    filesystem, path = open_store(url)
    with asking(url):
        return bool(filesystem.get_file_info(path).type == fs.FileType.File)


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Raises InputError where what is asked of the store at `url` fails within the block."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and _CLOSED not in str(error):
            raise
        raise InputError(
            f"{url}: the store cannot be read ({_said_by_store(error)}); check the bucket, the "
            "endpoint and the credentials in the environment, and run the same command again"
        ) from error


@contextmanager
def writing(url: str) -> Iterator[None]:
    """Raises StorageError where what is done to the store within the block fails."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{url}: the store cannot be written ({_said_by_store(error)}); check the bucket, the "
            "endpoint, and that the credentials in the environment may write there, and run the "
            "same command again"
        ) from error


def _said_by_store(error: Exception) -> str:
    """What went wrong, without what Google's client adds for its developers."""
    return _GOOGLE_STATUS.sub(r"\1", str(error))


def _stored(url: str, paths: Iterable[str]) -> list[StoredFile]:
    parts = urlsplit(url)
    return [
        StoredFile(urlunsplit((parts.scheme, *path.split("/", 1), parts.query, "")))
        for path in sorted(paths)
    ]


def join_url(url: str, name: str) -> str:
    """`name` in the folder `url`, whose query stays last."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
