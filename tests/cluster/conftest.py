from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.storage.locations import Location, StoredLocation


@pytest.fixture(scope="module")
def store_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URLs in an S3 store and a GCS store."""
    from tests.gcs_server import gcs_server, gcs_url
    from tests.object_store import BUCKET, s3_server

    folder = tmp_path_factory.mktemp("account")
    with (
        pytest.MonkeyPatch.context() as environment,
        s3_server(environment),
        gcs_server(environment, folder) as port,
    ):
        yield {"s3": f"s3://{BUCKET}/index", "gs": gcs_url(port, "index")}


@pytest.fixture(params=["folder", "s3", "gs"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """An empty location in a folder, in an S3 store and in a GCS store."""
    if request.param == "folder":
        return tmp_path / "index"
    url = request.getfixturevalue("store_urls")[request.param]
    return StoredLocation.at(url, tmp_path) / tmp_path.name
