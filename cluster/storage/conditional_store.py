"""Conditional writes of one small object in an s3:// or gs:// store.

Arrow's file systems write unconditionally, so these requests go through the vendors' own
clients: on S3 a PutObject with If-Match or If-None-Match, on GCS an insert with
ifGenerationMatch. Credentials come from the same environment as Arrow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from cluster.loopback import is_loopback_url
from cluster.storage.object_store import StoredFile, asking, store_options, writing

_TIMEOUT_S = 10
_TRIES = 4
_RETRIED = (408, 429, 500, 502, 503, 504)


class PreconditionError(Exception):
    """The object is not in the state that a conditional write expected."""


@dataclass(frozen=True, slots=True)
class Stamped:
    """An object's bytes, and its `stamp`, which changes with every write (ETag, generation).

    `age_s` is the time since that write by the clock of the store or file system.
    """

    data: bytes
    stamp: str
    age_s: float = 0.0


class ConditionalObject(Protocol):
    """One object that can be written only if it has not changed since it was read."""

    def read(self) -> Stamped | None:
        """Return the object, or None if it does not exist. Raises InputError if the store fails."""

    def write(self, data: bytes, expected: str | None) -> str:
        """Write only if the object's stamp is `expected`, or with None, if it does not exist.

        Returns the new stamp. Raises PreconditionError, or StorageError if the store fails.
        """


def conditional_object(file: StoredFile) -> ConditionalObject:
    """Return the object at `file`, with an S3 or GCS client depending on the URL's scheme."""
    parts = urlsplit(file.url)
    options = tuple(sorted(store_options(file.url).items()))
    make = _S3Object if parts.scheme == "s3" else _GcsObject
    return make(file.url, parts.netloc, parts.path.strip("/"), options)


@dataclass(frozen=True, slots=True)
class _S3Object:
    url: str
    bucket: str
    key: str
    options: tuple[tuple[str, str], ...]

    def read(self) -> Stamped | None:
        with asking(self.url), _s3_errors():
            try:
                found = self._client().get_object(Bucket=self.bucket, Key=self.key)
                data = found["Body"].read()
            except self._client().exceptions.NoSuchKey:
                return None
        now = parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
        return Stamped(data, found["ETag"], (now - found["LastModified"]).total_seconds())

    def write(self, data: bytes, expected: str | None) -> str:
        condition = {"IfMatch": expected} if expected else {"IfNoneMatch": "*"}
        with writing(self.url), _s3_errors():
            written = self._client().put_object(
                Bucket=self.bucket, Key=self.key, Body=data, **condition
            )
        return str(written["ETag"])

    def _client(self) -> Any:
        return _s3_client(self.options)


@lru_cache(maxsize=8)
def _s3_client(options: tuple[tuple[str, str], ...]) -> Any:
    # Imported here because readers never need it, and the import takes a third of a second.
    import botocore.session
    from botocore.config import Config

    given = dict(options)
    endpoint = given.get("endpoint_override")
    # Stores other than AWS support neither buckets in host names nor the newer checksums.
    url = f"{given.get('scheme', 'https')}://{endpoint}" if endpoint else None
    settings = Config(
        connect_timeout=_TIMEOUT_S,
        read_timeout=_TIMEOUT_S,
        retries={"total_max_attempts": _TRIES, "mode": "standard"},
        s3={"addressing_style": "path" if endpoint else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # None takes the proxies from the environment.
        proxies={} if url and is_loopback_url(url) else None,
    )
    return botocore.session.get_session().create_client(
        "s3",
        region_name=given.get("region"),
        endpoint_url=url,
        config=settings,
    )


@contextmanager
def _s3_errors() -> Iterator[None]:
    """Raises PreconditionError for a refused condition, and OSError for any other failure."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        # 409: another conditional write is in progress. 404: the object to replace is gone.
        if status in (409, 412) or code == "NoSuchKey":
            raise PreconditionError(code) from error
        raise OSError(str(error)) from error
    except BotoCoreError as error:
        raise OSError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _GcsObject:
    url: str
    bucket: str
    name: str
    options: tuple[tuple[str, str], ...]

    def read(self) -> Stamped | None:
        with asking(self.url):
            while True:
                reply = self._ask("GET", self._object())
                if reply.status_code == 404:
                    return None
                facts = _checked(reply).json()
                asked = {"alt": "media", "generation": facts["generation"]}
                data = self._ask("GET", self._object(), asked)
                # 404: the object has been replaced, so this generation no longer exists.
                if data.status_code != 404:
                    break
        now = parsedate_to_datetime(reply.headers["date"])
        age_s = (now - datetime.fromisoformat(facts["updated"])).total_seconds()
        return Stamped(_checked(data).content, facts["generation"], age_s)

    def write(self, data: bytes, expected: str | None) -> str:
        url = f"{self._base()}/upload/storage/v1/b/{self.bucket}/o"
        asked = {"uploadType": "media", "name": self.name, "ifGenerationMatch": expected or "0"}
        with writing(self.url):
            written = self._ask("POST", url, asked, data)
            if written.status_code == 412:
                raise PreconditionError(self.url)
            return str(_checked(written).json()["generation"])

    def _object(self) -> str:
        return f"{self._base()}/storage/v1/b/{self.bucket}/o/{quote(self.name, safe='')}"

    def _base(self) -> str:
        given = dict(self.options)
        endpoint = given.get("endpoint_override", "storage.googleapis.com")
        return f"{given.get('scheme', 'https')}://{endpoint}"

    def _ask(self, method: str, url: str, params: Any = None, data: bytes | None = None) -> Any:
        from google.auth.exceptions import GoogleAuthError

        try:
            return _gcs_session().request(method, url, params=params, data=data, timeout=_TIMEOUT_S)
        except GoogleAuthError as error:
            raise OSError(str(error)) from error


@lru_cache(maxsize=1)
def _gcs_session() -> Any:
    import google.auth
    from google.auth.transport.requests import AuthorizedSession
    from urllib3.util import Retry

    from cluster.requests_adapter import DirectOnLoopback

    credentials, _ = google.auth.default(
        scopes=["https://www.googleapis.com/auth/devstorage.read_write"]
    )
    session = AuthorizedSession(credentials)
    again = Retry(
        _TRIES - 1,
        backoff_factor=0.5,
        status_forcelist=_RETRIED,
        allowed_methods=None,
        raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, DirectOnLoopback(max_retries=again))
    return session


def _checked(response: Any) -> Any:
    if response.status_code >= 400:
        raise OSError(f"{response.status_code} {response.reason}")
    return response
