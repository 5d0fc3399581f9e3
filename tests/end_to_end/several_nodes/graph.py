"""Deploy a graph from within a pod, and report where its replicas are.

    python -m tests.end_to_end.several_nodes.graph deploy SETTING...
    python -m tests.end_to_end.several_nodes.graph placed FILE GATEWAYS

`placed` writes to FILE, as JSON, the node and the process of each deployment's replicas. Before, it
waits until each deployment has a replica, and the gateway has GATEWAYS.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import ray
from ray.serve.context import _get_global_client


def placed() -> dict[str, list[tuple[str, int]]]:
    [application] = _get_global_client().get_serve_details()["applications"].values()
    return {
        name: sorted((r["node_ip"], r["pid"]) for r in found["replicas"] if r["state"] == "RUNNING")
        for name, found in application["deployments"].items()
    }


def main(what: str, *given: str) -> None:
    ray.init(log_to_driver=False)
    if what == "deploy":
        # Imported here because `placed` runs often and needs no slow import.
        from cluster.settings.settings import load_settings
        from serve.app import deploy

        deploy(load_settings(overrides=given))
    else:
        file, gateways = given
        found = placed()
        while not all(found.values()) or len(found["Gateway"]) != int(gateways):
            time.sleep(0.5)
            found = placed()
        Path(file).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
