"""A local server of the S3 protocol from moto, if it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow import fs

BUCKET = "pubmed"


@contextmanager
def s3_server(environment: pytest.MonkeyPatch) -> Iterator[fs.S3FileSystem]:
    """Start a server with one empty bucket, set its environment variables, and yield a client."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    environment.setenv("AWS_ACCESS_KEY_ID", "anyone")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    client = fs.S3FileSystem(
        access_key="anyone",
        secret_key="anything",
        endpoint_override=f"{host}:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    client.create_dir(BUCKET)
    try:
        yield client
    finally:
        client.delete_dir(BUCKET)
        server.stop()
