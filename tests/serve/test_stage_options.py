"""What a stage's settings ask of Ray Serve."""

import pytest

from cluster.settings.settings import load_settings
from serve.app import stage_options

pytestmark = pytest.mark.ray


def test_no_node_has_more_gateways_than_the_settings_say() -> None:
    few = [f"serve.gateway.{key}" for key in ("per_node=1", "min_replicas=2", "max_replicas=2")]
    options = stage_options(load_settings(None, few).serve.gateway)
    assert options["max_replicas_per_node"] == 1
    assert "max_replicas_per_node" not in stage_options(load_settings().serve.gateway)


def test_a_clusters_gateways_and_the_copies_of_a_shard_are_kept_apart() -> None:
    serve = load_settings("cluster.yaml").serve
    for stage in (serve.gateway, serve.shard):
        assert stage_options(stage)["max_replicas_per_node"] == 1
        assert stage.min_replicas > 1
