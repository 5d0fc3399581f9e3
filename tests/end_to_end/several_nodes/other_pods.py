"""Pods of other namespaces and hosts outside the cluster, as network policies see them."""

from __future__ import annotations

from tests.end_to_end.several_nodes.nft_rules import PolicyPod

# Pods of other namespaces: namespace and labels.
AROUND: dict[str, tuple[str, dict[str, str]]] = {
    "operator": ("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}),
    "prometheus": ("monitoring", {"app.kubernetes.io/name": "prometheus"}),
    "grafana": ("monitoring", {"app.kubernetes.io/name": "grafana"}),
    "gateway": ("web", {}),
    "stranger": ("default", {"citeray/part": "serve", "ray.io/node-type": "head"}),
    "dns": ("kube-system", {"k8s-app": "kube-dns"}),
}
NAMESPACES = {"web": {"citeray/may-ask": "yes"}}
# Hosts that are not pods.
ADDRESSES = {
    "internet": "203.0.113.10",
    "load-balancer": "35.191.0.7",
    "gke-identity": "169.254.169.254",
    "gke-identity-calico": "169.254.169.252",
    "eks-identity": "169.254.170.23",
    "node-dns": "169.254.20.10",
}


def pods_around(first: int = 100) -> dict[str, PolicyPod]:
    """Return the pods of other namespaces, at addresses from 10.77.0.`first` on."""
    return {
        name: PolicyPod(namespace, labels, (f"10.77.0.{number}",))
        for number, (name, (namespace, labels)) in enumerate(AROUND.items(), first)
    }
