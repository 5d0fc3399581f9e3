"""What `kubectl kustomize` makes of k8s/, as far as its files use it.

Resources and generated ConfigMaps (with the hash in their names), namespace, JSON patches,
images, replacements of a whole field, and the references that follow a ConfigMap's name.
What else a kustomization.yaml says is refused, so that nothing is passed over. Held against
the real one where there is a kubectl (test_render.py). Rules: kubectl.docs.kubernetes.io.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "configurations",
    "configMapGenerator",
    "images",
    "patches",
    "replacements",
}
NO_NAMESPACE = {"Namespace"}
LOCAL = "config.kubernetes.io/local-config"
# The generator's own: where Kubernetes' kinds name a ConfigMap.
BUILT_IN = [
    "spec/template/spec/volumes/configMap/name",
    "spec/jobTemplate/spec/template/spec/volumes/configMap/name",
]


def render(folder: Path) -> list[Object]:
    """The objects of a kustomization, without those that are for the rendering alone."""
    made, references = _accumulate(folder)
    new = {}
    for obj in made:
        suffix = obj.pop("_suffix", "")
        if obj["kind"] == "ConfigMap":
            new[obj["metadata"]["name"]] = obj["metadata"]["name"] + suffix
            obj["metadata"]["name"] += suffix
    for obj in made:
        for path in (*BUILT_IN, *references.get(obj["kind"], [])):
            for holder, key in _places(obj, path.split("/")):
                holder[key] = new.get(holder[key], holder[key])
    kept = (obj for obj in made if LOCAL not in obj["metadata"].get("annotations", {}))
    return list(kept)


def _accumulate(folder: Path) -> tuple[list[Object], dict[str, list[str]]]:
    said = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    if unknown := set(said) - KNOWN:
        raise ValueError(f"{folder}: {unknown} are not rendered here")
    objects: list[Object] = []
    references: dict[str, list[str]] = {}
    for name in said.get("resources", []):
        path = folder / name
        if path.is_dir():
            below, more = _accumulate(path)
            objects += below
            references |= more
        else:
            objects += yaml.safe_load_all(path.read_text(encoding="utf-8"))
    for name in said.get("configurations", []):
        for reference in yaml.safe_load((folder / name).read_text())["nameReference"]:
            for spec in reference["fieldSpecs"]:
                references.setdefault(spec["kind"], []).append(spec["path"])
    objects = copy.deepcopy(objects)
    objects += [_config_map(folder, entry) for entry in said.get("configMapGenerator", [])]
    for patch in said.get("patches", []):
        _patch(objects, patch)
    if namespace := said.get("namespace"):
        for obj in objects:
            _in_namespace(obj, namespace)
    for image in said.get("images", []):
        for obj in objects:
            _rename_images(obj, image)
    for replacement in said.get("replacements", []):
        _replace(objects, replacement)
    return objects, references


def _config_map(folder: Path, entry: dict[str, Any]) -> Object:
    data = {Path(name).name: (folder / name).read_text("utf-8") for name in entry["files"]}
    options = entry.get("options", {})
    metadata = {"name": entry["name"]}
    metadata |= {key: options[key] for key in ("labels", "annotations") if key in options}
    suffix = "" if options.get("disableNameSuffixHash") else f"-{name_hash(data)}"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": data,
        "_suffix": suffix,
    }


def name_hash(data: dict[str, str]) -> str:
    """Ten characters of the SHA-256 of the ConfigMap as JSON, without letters that spell words."""
    whole = {"data": data, "kind": "ConfigMap", "name": ""}
    text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    # As Go's encoder writes it.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return digest.translate(str.maketrans("013ae", "ghkmt"))


def _patch(objects: list[Object], patch: dict[str, Any]) -> None:
    target = patch["target"]
    found = [
        obj
        for obj in objects
        if obj["kind"] == target["kind"]
        and obj["metadata"]["name"] == target.get("name", obj["metadata"]["name"])
    ]
    if not found:
        raise ValueError(f"nothing is patched by {target}")
    for obj in found:
        for step in yaml.safe_load(patch["patch"]):
            _apply(obj, step)


def _apply(obj: Any, step: dict[str, Any]) -> None:
    *above, last = [p.replace("~1", "/").replace("~0", "~") for p in step["path"].split("/")[1:]]
    for part in above:
        obj = obj[int(part)] if isinstance(obj, list) else obj[part]
    key: Any = int(last) if isinstance(obj, list) else last
    if step["op"] == "remove":
        del obj[key]
    elif step["op"] == "add" and isinstance(obj, dict):
        obj[key] = copy.deepcopy(step["value"])
    elif step["op"] == "replace":
        obj[key]  # What is not there cannot be replaced.
        obj[key] = copy.deepcopy(step["value"])
    else:
        raise ValueError(f"{step}: not rendered here")


def _in_namespace(obj: Object, namespace: str) -> None:
    if obj["kind"] in NO_NAMESPACE:
        return
    obj["metadata"]["namespace"] = namespace
    for subject in obj.get("subjects", []) if obj["kind"] == "RoleBinding" else []:
        subject["namespace"] = namespace


def _rename_images(node: Any, image: dict[str, str]) -> None:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("containers", "initContainers") and isinstance(value, list):
                for container in value:
                    name, _, tag = container["image"].partition(":")
                    if name == image["name"]:
                        container["image"] = f"{image['newName']}:{tag}"
            _rename_images(value, image)
    elif isinstance(node, list):
        for value in node:
            _rename_images(value, image)


def _replace(objects: list[Object], replacement: dict[str, Any]) -> None:
    source = replacement["source"]
    named = (source["kind"], source["name"])
    found = next(o for o in objects if (o["kind"], o["metadata"]["name"]) == named)
    key = source["fieldPath"].removeprefix("data.[").removesuffix("]")
    for target in replacement["targets"]:
        for obj in objects:
            if obj["kind"] == target["select"]["kind"]:
                for path in target["fieldPaths"]:
                    for holder, last in _places(obj, path.split(".")):
                        holder[last] = found["data"][key]


def _places(node: Any, parts: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a path leads, through every element of the lists on its way."""
    if isinstance(node, list):
        for element in node:
            yield from _places(element, parts)
    elif isinstance(node, dict) and parts[0] in node:
        if len(parts) == 1:
            yield node, parts[0]
        else:
            yield from _places(node[parts[0]], parts[1:])
