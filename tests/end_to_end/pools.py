"""Where replicas of a pool start, on two Ray nodes of this machine with labels.

    python -m tests.end_to_end.pools

Prints, as JSON, the label of the nodes on which each deployment's replicas ran. A process of its
own: Ray reads how it authenticates when it is imported.
"""

from __future__ import annotations

import json

import ray
from ray import serve
from ray.cluster_utils import Cluster

from cluster.settings.settings import load_settings
from serve.app import POOL, deployment, one_for_all

POOLS = ("models", "retrieval", "llm")


class WhereAmI:
    def label(self) -> str:
        labels: dict[str, str] = ray.get_runtime_context().get_node_labels()
        return labels.get(POOL, "")


def main() -> None:
    cluster = Cluster()
    cluster.add_node(num_cpus=0)
    for pool in POOLS:
        cluster.add_node(num_cpus=2, labels={POOL: pool})
    ray.init(address=cluster.address, log_to_driver=False)
    stage = load_settings(None, ["serve.writer.pool=retrieval"]).serve.writer
    stage = stage.model_copy(update={"min_replicas": 2, "max_replicas": 2, "cpus": 0.5})
    apps = {
        "many": deployment(WhereAmI, "Many", stage),
        "one": one_for_all(WhereAmI, "One", "models"),
    }
    handles = {name: serve.run(a, name=name, route_prefix=None) for name, a in apps.items()}
    found = {
        name: sorted({handle.label.remote().result() for _ in range(8)})
        for name, handle in handles.items()
    }
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
