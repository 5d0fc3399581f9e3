"""Where pods look for an identity, and what the policies let them reach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.k8s.chart import pod_templates, render, values_of

METADATA = "AWS_EC2_METADATA_DISABLED"


def variables(**network: Any) -> list[dict[str, str | None]]:
    """Those of each Ray pod's main container."""
    objects = render(values_of("pubmed", network=network, build={"enabled": True}))
    return [
        {entry["name"]: entry.get("value") for entry in template["spec"]["containers"][0]["env"]}
        for obj in objects
        for place, template in pod_templates(obj).items()
        if place.startswith(("RayService", "RayJob")) and not place.endswith("submitter")
    ]


@pytest.mark.parametrize("identity", ["none", "gke", "eks"])
def test_no_pod_waits_for_instance_roles_that_the_policies_cut_off(identity: str) -> None:
    """Arrow's client of S3 asks 169.254.169.254 although it has keys: 8 s where nothing replies."""
    found = variables(identity=identity)
    assert len(found) >= 6
    assert {given.get(METADATA) for given in found} == {"true"}


def test_without_policies_instance_roles_are_used() -> None:
    assert {given.get(METADATA) for given in variables(policies=False)} == {None}
