"""Stand-ins for kubectl, helm, curl and others, by which the guide's commands run here.

One program under several names. Helm renders the chart for real; the cluster is a folder of files.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(os.environ.get("STAND_INS", "."))


def option(words: list[str], name: str) -> list[str]:
    """Every value of an option, given as `--name value` or `--name=value`."""
    found = [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
    return found + [value for word, value in pairwise(words) if word == name]


def cluster() -> dict[str, Any]:
    path = HERE / "cluster.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"objects": {}}
    return found


def keep(state: dict[str, Any]) -> None:
    (HERE / "cluster.json").write_text(json.dumps(state))


def fail(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(1)


def helm(words: list[str]) -> None:
    import helm_python
    import yaml

    from tests.k8s.chart import chart, merge, of_release

    state = cluster()
    if words[0] == "uninstall":
        left = [n for n, obj in state["objects"].items() if obj.get("by") == words[1]]
        # KubeRay's clean-up of a RayService asks Redis, which would be gone.
        if any(name.startswith("rayservice/") for name in left):
            fail("a RayService is still there")
        state["objects"] = {
            n: o for n, o in state["objects"].items() if n not in left or o.get("keep")
        }
    elif words[0] in ("install", "upgrade") and words[2] == "k8s":
        if words[0] == "install" and any(o.get("by") for o in state["objects"].values()):
            fail("cannot re-use a name that is still in use")
        values: dict[str, Any] = {}
        for file in option(words, "--values"):
            values = merge(values, yaml.safe_load(Path(file).read_text(encoding="utf-8")))
        for expression in option(words, "--set"):
            values = merge(values, helm_python.parse_set_string(expression))
        needed = set(chart().merge_values(values)["secrets"].values())
        missing = {s for s in needed if f"secret/{s}" not in state["objects"]}
        if missing:
            fail(f"secrets {missing} are missing")
        before = {n: o for n, o in state["objects"].items() if not o.get("by")}
        state["objects"] = before | of_release(values, words[1])
    keep(state)


def kubectl(words: list[str]) -> None:
    state = cluster()
    objects = state["objects"]
    match words:
        case ["create", "secret", "generic", name, *rest]:
            literals = dict(v.split("=", 1) for v in option(rest, "--from-literal"))
            objects[f"secret/{name}"] = {"data": literals}
        case ["create", "job", name, source]:
            if source.removeprefix("--from=") not in objects:
                fail(f"{source} is not there")
            objects[f"job/{name}"] = {}
        case ["get", "secret", name, *rest]:
            (path,) = option(rest, "--output")
            key = path.removeprefix("jsonpath={.data.").removesuffix("}")
            print(
                base64.b64encode(objects[f"secret/{name}"]["data"][key].encode()).decode(), end=""
            )
        case ["get", what, "--ignore-not-found", *_]:
            if what in objects:
                ended = os.environ["RAYJOB_ENDS"] if what.startswith("rayjob/") else "Complete"
                print(f"found {ended}", end="")
        case ["wait" | "port-forward" | "logs", *rest]:
            named = [word for word in rest if "/" in word]
            if [w for w in named if not w.startswith("service/") and w not in objects]:
                fail(f"{named} is not there")
        case ["delete", kinds, *_] if "/" not in kinds:
            kinds = kinds.replace("pvc", "persistentvolumeclaim")
            gone = tuple(f"{kind}/" for kind in kinds.split(","))
            state["objects"] = {n: o for n, o in objects.items() if not n.startswith(gone)}
    keep(state)


def curl(words: list[str]) -> None:
    (header,) = [w for w in words if w.startswith("Authorization: ")]
    keys = cluster()["objects"]["secret/citeray-api-keys"]["data"]["keys"]
    accepted = [pair.partition(":")[2] for pair in keys.split()]
    if header.removeprefix("Authorization: Bearer ") not in accepted:
        fail('{"detail": "unknown key"}')
    print('{"answer": "..."}')


if __name__ == "__main__":
    name, words = sys.argv[1], sys.argv[2:]
    with (HERE / "calls").open("a", encoding="utf-8") as calls:
        calls.write(" ".join([name, *words]) + "\n")
    if name == "citeray":
        Path(option(words, "--emit-values")[0]).write_text("{}\n")
    else:
        {"helm": helm, "kubectl": kubectl, "curl": curl}[name](words)
