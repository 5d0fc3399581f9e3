"""A server of the few Google Cloud Storage calls that Arrow makes, on loopback.

    python -m tests.gcs_server      prints its port, and serves until standard input closes

It is a process of its own because Arrow holds the GIL while it waits for this store. It implements
a part of https://cloud.google.com/storage/docs/json_api/v1: list, metadata, reads by byte range,
resumable and simple uploads with ifGenerationMatch, deletion, and metadata of buckets.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from tests.object_store import BUCKET
from tests.serve.http_server import serving

ROOT = Path(__file__).resolve().parents[1]
# Seconds for which Arrow retries a failed call; the minimum.
RETRY_S = 3


@contextmanager
def gcs_server(environment: pytest.MonkeyPatch, folder: Path) -> Iterator[int]:
    """Start a server with an empty bucket, set credentials in `environment`, and yield the port."""
    command = [sys.executable, "-m", "tests.gcs_server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        path = folder / "account.json"
        path.write_text(json.dumps(_account(port)))
        environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        yield port
        server.communicate(b"")


def _account(port: int) -> dict[str, str]:
    """Return a service account with a new key, whose token endpoint is the server."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {
        "type": "service_account",
        "private_key_id": "1",
        "private_key": key.private_bytes(*form).decode(),
        "client_email": "anyone@example.org",
        "client_id": "1",
        "token_uri": f"http://127.0.0.1:{port}/token",
    }


def gcs_url(port: int, path: str, bucket: str = BUCKET) -> str:
    """Return the URL of `path` in the bucket of the local store at `port`."""
    query = f"endpoint_override=127.0.0.1:{port}&scheme=http&retry_limit_seconds={RETRY_S}"
    return f"gs://{bucket}/{path}?{query}"


class _Bucket:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        # Generation and time of the last write of each object.
        self.written: dict[str, tuple[int, str]] = {}
        self._uploads: dict[str, tuple[str, bytearray]] = {}

    def metadata(self, name: str) -> dict[str, Any]:
        """Return the metadata of an object."""
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": BUCKET,
            "generation": str(self.written[name][0]),
            "size": str(len(self.objects[name])),
            "updated": self.written[name][1],
            "timeCreated": self.written[name][1],
        }

    def listed(self, prefix: str, delimiter: str) -> dict[str, Any]:
        names = [name for name in sorted(self.objects) if name.startswith(prefix)]
        cut = len(prefix)
        below = [n for n in names if delimiter and delimiter in n[cut:]]
        folders = {n[: n.index(delimiter, cut) + 1] for n in below}
        items = [self.metadata(name) for name in names if name not in below]
        return {"kind": "storage#objects", "items": items, "prefixes": sorted(folders)}

    def put(self, name: str, data: bytes) -> Response:
        self.objects[name] = data
        generation = time.time_ns() // 1000
        while generation <= self.written.get(name, (0, ""))[0]:
            generation += 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.written[name] = (generation, now)
        return JSONResponse(self.metadata(name))

    def holds(self, name: str, generation: str) -> bool:
        """Return whether the object has this generation; "0" means that it does not exist."""
        found = str(self.written[name][0]) if name in self.objects else "0"
        return found == generation

    def begin(self, name: str) -> str:
        """Start an upload and return its id."""
        upload = uuid.uuid4().hex
        self._uploads[upload] = (name, bytearray())
        return upload

    def receive(self, upload: str, span: str, data: bytes) -> Response:
        """Receive a part of an upload; reply 308 until all of it has arrived."""
        name, held = self._uploads[upload]
        held += data
        total = span.rpartition("/")[2]
        if total == "*" or len(held) < int(total):
            headers = {"Range": f"bytes=0-{len(held) - 1}"} if held else {}
            return Response(status_code=308, headers=headers)
        return self.put(name, bytes(held))


def _ranged(data: bytes, span: str | None) -> Response:
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", span or "")
    if found is None:
        return Response(data, media_type="application/octet-stream")
    begin, end = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
    if begin >= len(data):
        return Response(status_code=416)
    headers = {"Content-Range": f"bytes {begin}-{end}/{len(data)}"}
    return Response(data[begin : end + 1], 206, headers)


def _missing() -> Response:
    return JSONResponse({"error": {"code": 404, "message": "Not Found"}}, 404)


def _api(held: _Bucket) -> FastAPI:
    api = FastAPI()

    @api.post("/token")
    def token() -> dict[str, Any]:
        return {"access_token": "anything", "token_type": "Bearer", "expires_in": 3600}

    @api.get("/storage/v1/b/{bucket}")
    def bucket(bucket: str) -> Response:
        return JSONResponse({"name": bucket}) if bucket == BUCKET else _missing()

    @api.get("/storage/v1/b/{bucket}/o")
    def objects(bucket: str, prefix: str = "", delimiter: str = "") -> Response:
        return JSONResponse(held.listed(prefix, delimiter)) if bucket == BUCKET else _missing()

    @api.get("/storage/v1/b/{bucket}/o/{name:path}")
    def read(
        bucket: str, name: str, request: Request, alt: str = "json", generation: str = ""
    ) -> Response:
        if bucket != BUCKET or name not in held.objects:
            return _missing()
        if generation and not held.holds(name, generation):
            return _missing()
        if alt == "media":
            return _ranged(held.objects[name], request.headers.get("range"))
        return JSONResponse(held.metadata(name))

    @api.delete("/storage/v1/b/{bucket}/o/{name:path}")
    def delete(bucket: str, name: str) -> Response:
        there = bucket == BUCKET and held.objects.pop(name, None) is not None
        return Response(status_code=204) if there else _missing()

    @api.post("/upload/storage/v1/b/{bucket}/o")
    async def begin(bucket: str, name: str, request: Request) -> Response:
        if bucket != BUCKET:
            return _missing()
        if request.query_params["uploadType"] == "media":
            data = await request.body()
            if not held.holds(name, request.query_params["ifGenerationMatch"]):
                return JSONResponse({"error": {"code": 412, "message": "Precondition"}}, 412)
            return held.put(name, data)
        return Response(headers={"Location": f"{request.base_url}upload/{held.begin(name)}"})

    @api.put("/upload/{upload}")
    async def send(upload: str, request: Request) -> Response:
        span = request.headers.get("content-range", "bytes */*")
        return held.receive(upload, span, await request.body())

    return api


def main() -> None:
    with serving(_api(_Bucket())) as port:
        print(port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
