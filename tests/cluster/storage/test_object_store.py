import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, Response
from pyarrow import fs

from cluster.errors import InputError
from cluster.storage import object_store
from cluster.storage.object_store import (
    StoredFile,
    glob_store,
    is_stored,
    join_url,
    list_folder,
    open_store,
)
from tests.object_store import BUCKET, s3_server
from tests.serve.http_server import serving

FOLDER = f"s3://{BUCKET}/a"


@pytest.fixture(scope="module")
def s3() -> Iterator[fs.S3FileSystem]:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        for path in ("a/n1.xml", "a/n2.xml", "a/b/n3.xml", "c.xml"):
            with client.open_output_stream(f"{BUCKET}/{path}") as sink:
                sink.write(path.encode() * 1000)
        yield client


def test_plain_paths_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, wanted in (("x/y", str(tmp_path / "x/y")), ("file:///a%20b/c", "/a b/c")):
        filesystem, path = open_store(name)
        assert (type(filesystem), path) == (fs.LocalFileSystem, wanted)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("hdfs://x/y", "hdfs:// is not supported; use a path, file://, s3:// or gs://"),
        ("s3:///key", "does not name a bucket; write s3://bucket/prefix"),
        ("s3://b/k?secret_key=hush", "unknown option secret_key; there are: endpoint_overr"),
        ("s3://AKIA:hush@bucket/k", "s3://bucket/k: a URL may hold no credentials"),
    ],
)
def test_invalid_urls_are_rejected_without_credentials(url: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert said in str(caught.value)
    assert "hush" not in str(caught.value)


def test_missing_object_raises_file_not_found(s3: fs.S3FileSystem) -> None:
    with pytest.raises(FileNotFoundError, match=r"a/n9\.xml: there is no such object"):
        StoredFile(f"{FOLDER}/n9.xml").stat()
    with pytest.raises(OSError, match=r"n9\.xml"):
        StoredFile(f"{FOLDER}/n9.xml").open()


def test_store_lists_folders_and_globs(s3: fs.S3FileSystem) -> None:
    assert [str(f) for f in list_folder(FOLDER)] == [f"{FOLDER}/n1.xml", f"{FOLDER}/n2.xml"]
    assert list_folder(f"{FOLDER}/nowhere") == []
    assert [f.name for f in glob_store(f"s3://{BUCKET}/**/n[13].xml")] == ["n3.xml", "n1.xml"]
    assert is_stored(f"s3://{BUCKET}/c.xml")
    assert not is_stored(FOLDER)


def test_url_may_contain_the_endpoint(s3: fs.S3FileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    file = StoredFile(f"{FOLDER}/n1.xml?endpoint_override={endpoint}&scheme=http")
    assert (file.name, file.stat().st_size) == ("n1.xml", 8000)
    assert list_folder(join_url(FOLDER + file.url[file.url.index("?") :], "b"))[0].name == "n3.xml"


def test_access_denied_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FastAPI()
    api.api_route("/{path:path}", methods=["GET", "HEAD"])(lambda: Response(status_code=403))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with (
        serving(api) as port,
        pytest.raises(InputError, match=r"the store cannot be read .*ACCESS_DENIED.*; check the"),
    ):
        list_folder(f"s3://bucket/a?endpoint_override=127.0.0.1:{port}&scheme=http")


@pytest.mark.slow
def test_unresponsive_store_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "REQUEST_S", 0.3)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        begun = time.monotonic()
        with pytest.raises(InputError, match=r"the store cannot be read .*Timeout.*; check the"):
            list_folder(f"s3://bucket/a?endpoint_override=127.0.0.1:{port}&scheme=http")
    assert time.monotonic() - begun < 60
