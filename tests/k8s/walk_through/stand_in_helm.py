"""A `helm` that renders charts by Helm's own library into a stand-in cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.k8s.chart import merge
from tests.k8s.helm import K8S, HelmRefusedError, helm
from tests.k8s.walk_through.state import Arguments, Object, RefusedError, key_of, remove

OF_KUBERNETES = ("apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
                 "scheduling.k8s.io")  # fmt: skip
OPERATOR = "kuberay/kuberay-operator"


def parser() -> argparse.ArgumentParser:
    found = Arguments("helm", allow_abbrev=False)
    commands = found.add_subparsers(dest="command", required=True)
    repo = commands.add_parser("repo", allow_abbrev=False)
    repo.add_argument("action", choices=["add"])
    repo.add_argument("name")
    repo.add_argument("url")
    for name in ("install", "upgrade"):
        command = commands.add_parser(name, allow_abbrev=False)
        command.add_argument("release")
        command.add_argument("chart")
        command.add_argument("--values", action="append", default=[])
        command.add_argument("--set", action="append", default=[])
        command.add_argument("--version")
        command.add_argument("--namespace")
        if name == "install":
            command.add_argument("--create-namespace", action="store_true")
    uninstall = commands.add_parser("uninstall", allow_abbrev=False)
    uninstall.add_argument("release")
    uninstall.add_argument("--namespace")
    return found


def rendered(args: argparse.Namespace, folder: Path, namespace: str) -> list[Object]:
    values: dict[str, Any] = {}
    for name in args.values:
        path = folder / name
        if not path.is_file():
            raise RefusedError(f"open {name}: no such file or directory")
        values = merge(values, yaml.safe_load(path.read_text("utf-8")))
    for given in args.set:
        values = merge(values, helm("parse", given))
    if (folder / args.chart).resolve() != K8S:
        raise RefusedError(f"path {args.chart!r} not found")
    try:
        made = helm("render", values, name=args.release, namespace=namespace)
    except HelmRefusedError as error:
        raise RefusedError(f"INSTALLATION FAILED: {error}") from error
    return [
        obj
        for path, text in made.items()
        if path.endswith(".yaml")
        for obj in yaml.load_all(text, yaml.CSafeLoader)
        if obj
    ]


def require_definitions(state: Object, objects: list[Object]) -> None:
    for obj in objects:
        group = obj["apiVersion"].rpartition("/")[0]
        if group and group not in OF_KUBERNETES and group not in state["groups"]:
            version = obj["apiVersion"]
            raise RefusedError(
                f'unable to build kubernetes objects: no matches for kind "{obj["kind"]}" in '
                f'version "{version}" ensure CRDs are installed first'
            )


def apply(state: Object, release: str, namespace: str, objects: list[Object]) -> None:
    require_definitions(state, objects)
    keys = [key_of(namespace, obj["kind"], obj["metadata"]["name"]) for obj in objects]
    for old in state["releases"].get(release, []):
        if old not in keys:
            drop(state, old)
    for key, obj in zip(keys, objects, strict=True):
        before = state["objects"].get(key, {})
        state["objects"][key] = {
            **obj,
            **{k: before[k] for k in ("status", "looks") if k in before},
        }
    state["releases"][release] = keys


def drop(state: Object, key: str) -> None:
    obj = state["objects"].get(key, {})
    policy = obj.get("metadata", {}).get("annotations", {}).get("helm.sh/resource-policy")
    if obj and policy != "keep":
        remove(state, key)


def install(state: Object, args: argparse.Namespace, folder: Path) -> str:
    namespace = args.namespace or state["context"]
    release = f"{namespace}/{args.release}"
    if args.command == "install" and release in state["releases"]:
        raise RefusedError("INSTALLATION FAILED: cannot re-use a name that is still in use")
    if args.command == "upgrade" and release not in state["releases"]:
        raise RefusedError(f'UPGRADE FAILED: "{args.release}" has no deployed releases')
    if getattr(args, "create_namespace", False):
        state["namespaces"].setdefault(namespace, {})
    if namespace not in state["namespaces"]:
        raise RefusedError(f'INSTALLATION FAILED: create: namespaces "{namespace}" not found')
    if args.chart == OPERATOR:
        if "kuberay" not in state["repositories"]:
            raise RefusedError("INSTALLATION FAILED: repo kuberay not found")
        state["groups"].append("ray.io")
        state["releases"][release] = []
    else:
        apply(state, release, namespace, rendered(args, folder, namespace))
    return f"NAME: {args.release}\nSTATUS: deployed"


def run(state: Object, words: Sequence[str], folder: Path) -> str:
    """What `helm` says to the words, in the folder; raises RefusedError where it fails."""
    args = parser().parse_args(words)
    if args.command == "repo":
        if not state["plan"]["repository"]:
            raise RefusedError(f'looks like "{args.url}" is not a valid chart repository')
        state["repositories"].append(args.name)
        return f'"{args.name}" has been added to your repositories'
    if args.command in ("install", "upgrade"):
        return install(state, args, folder)
    release = f"{args.namespace or state['context']}/{args.release}"
    if release not in state["releases"]:
        raise RefusedError(f"uninstall: Release not loaded: {args.release}: release: not found")
    # The RayService before its Redis: KubeRay then finds no Redis to clear.
    keys = state["releases"].pop(release)
    for key in sorted(keys, key=lambda key: "/RayService/" in key):
        drop(state, key)
    return f'release "{args.release}" uninstalled'
