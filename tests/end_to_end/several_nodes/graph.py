"""Deploy a graph from within a pod, and report where its replicas are.

    python -m tests.end_to_end.several_nodes.graph deploy SETTING...
    python -m tests.end_to_end.several_nodes.graph placed FILE

`placed` writes to FILE, as JSON, the node and the process of each deployment's replicas.
"""

from __future__ import annotations

import json
import sys
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
        # Imported here because `placed` runs often and does without this slow import.
        from cluster.settings.settings import load_settings
        from serve.app import deploy

        deploy(load_settings(overrides=given))
    else:
        Path(given[0]).write_text(json.dumps(placed()))


if __name__ == "__main__":
    main(*sys.argv[1:])
