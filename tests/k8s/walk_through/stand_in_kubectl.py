"""A `kubectl` of a stand-in cluster: what the guide and the chart's scripts ask of it."""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.k8s.walk_through.state import (
    ALIASES,
    Arguments,
    Object,
    RefusedError,
    in_namespace,
    key_of,
    operator_runs,
    remove,
)

ANSWER = {"verdict": "answered", "sentences": [{"text": "Metformin does.", "pmids": [1]}]}
UPDATE = "citeray-update"


def parser() -> argparse.ArgumentParser:
    found = Arguments("kubectl", allow_abbrev=False)
    commands = found.add_subparsers(dest="command", required=True)

    def command(name: str, *words: str, **options: Any) -> None:
        made = commands.add_parser(name, allow_abbrev=False)
        for word in words:
            made.add_argument(word, nargs="*")
        for option, settings in options.items():
            made.add_argument(f"--{option.replace('_', '-')}", **settings)

    flag: dict[str, Any] = {"action": "store_true"}
    value: dict[str, Any] = {}
    command(
        "create", "what", from_literal={"action": "append", "default": []}, filename=value,
        **{"from": value},
    )  # fmt: skip
    command("label", "what")
    command("config", "what", current=flag, namespace=value)
    command("get", "what", ignore_not_found=flag, output=value)
    command("logs", follow=flag, selector=value)
    command("delete", "what", all=flag, wait=flag, ignore_not_found=flag, raw=value, filename=value)
    command("wait", "what", timeout=value, **{"for": value})
    command("port-forward", "what")
    return found


def missing(what: str, name: str) -> RefusedError:
    return RefusedError(f'Error from server (NotFound): {what.lower()}s "{name}" not found')


def find(state: Object, named: str) -> tuple[str, Object | None]:
    """The key and the object of KIND/NAME in the namespace of the context."""
    kind, _, name = named.partition("/")
    key = key_of(state["context"], ALIASES[kind], name)
    return key, state["objects"].get(key)


def look(state: Object, obj: Object) -> None:
    """Time passes for a RayJob: each look finds its next state."""
    if obj["kind"] != "RayJob":
        return
    plan = state["plan"]["update" if obj["metadata"]["name"] == UPDATE else "build"]
    number = min(obj.setdefault("looks", 0), len(plan) - 1)
    obj["looks"] += 1
    deployment, _, rest = plan[number].partition(" ")
    if deployment in ("Running", "Complete") and (lacking := lacks(state, obj)):
        deployment, rest = "Failed", f"FAILED secret {lacking} not found within 7200 s"
    job, _, message = rest.partition(" ")
    obj["status"] = {"jobDeploymentStatus": deployment, "jobStatus": job, "message": message}
    state["published"] |= job == "SUCCEEDED"


def lacks(state: Object, obj: Object) -> str | None:
    """A Secret that its pods name and that is not there."""
    text = json.dumps(obj)
    named = re.findall(r'"secretName": "([^"]+)"', text)
    named += re.findall(r'"secretKeyRef": \{[^}]*"name": "([^"]+)"', text)
    held = {key.rpartition("/")[2] for key in in_namespace(state, state["context"], "Secret")}
    return next((name for name in named if name not in held), None)


def json_path(template: str, obj: Object) -> str:
    def value(match: re.Match[str]) -> str:
        if "[?(" in match[1]:
            conditions = obj.get("status", {}).get("conditions", [])
            return " ".join(c["type"] for c in conditions if c["status"] == "True")
        node: Any = obj
        for part in match[1].strip(".").split("."):
            node = node.get(part, "") if isinstance(node, dict) else ""
        return str(node)

    return re.sub(r"\{([^}]*)\}", value, template.removeprefix("jsonpath="))


def get(state: Object, args: argparse.Namespace) -> str:
    named = "/".join(args.what)
    if args.ignore_not_found and state["plan"]["outages"]:
        state["plan"]["outages"] -= 1
        raise RefusedError("The connection to the server was refused")
    _, obj = find(state, named)
    if obj is None:
        if args.ignore_not_found:
            return ""
        raise missing(*named.split("/"))
    look(state, obj)
    return json_path(args.output, obj)


def create(state: Object, args: argparse.Namespace) -> str:
    if args.filename:
        obj = yaml.safe_load(Path(args.filename).read_text("utf-8"))
        kind, name = obj["kind"], obj["metadata"]["name"]
        obj["metadata"]["uid"] = f"uid-{len(state['objects'])}"
    elif args.what[0] == "namespace":
        if args.what[1] in state["namespaces"]:
            raise RefusedError(f'namespaces "{args.what[1]}" already exists')
        state["namespaces"][args.what[1]] = {}
        return f"namespace/{args.what[1]} created"
    elif args.what[:2] == ["secret", "generic"]:
        kind, name = "Secret", args.what[2]
        literals = dict(literal.split("=", 1) for literal in args.from_literal)
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in literals.items()}
        obj = {"kind": kind, "metadata": {"name": name}, "data": encoded}
    else:
        kind, name = "Job", args.what[1]
        _, source = find(state, getattr(args, "from"))
        if args.what[0] != "job" or source is None:
            raise missing("cronjob", str(getattr(args, "from")).partition("/")[2])
        obj = {"kind": kind, "metadata": {"name": name}, "status": {}, "of": source}
    key = key_of(state["context"], kind, name)
    if key in state["objects"]:
        raise RefusedError(
            f'Error from server (AlreadyExists): {kind.lower()}s "{name}" already exists'
        )
    state["objects"][key] = obj
    return f"{kind.lower()}/{name} created"


def run_job(state: Object, name: str, environment: Mapping[str, str]) -> None:
    """The CronJob's own script, as the pod of the Job runs it; its end becomes the Job's."""
    job = state["objects"][key_of(state["context"], "Job", name)]
    data = state["objects"][key_of(state["context"], "ConfigMap", "citeray-run-update")]["data"]
    [container] = job["of"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]}
    with tempfile.TemporaryDirectory() as folder:
        for file, text in data.items():
            (Path(folder) / file).write_text(text)
        shell, script = container["command"]
        done = subprocess.run(
            [shell, f"{folder}/{Path(script).name}"], env={**environment, **given},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
    well = ("SuccessCriteriaMet", "Complete")
    ends = well if done.returncode == 0 else ("FailureTarget", "Failed")
    job["log"] = done.stdout + done.stderr
    job["status"] = {"conditions": [{"type": end, "status": "True"} for end in ends]}


def delete(state: Object, args: argparse.Namespace) -> str:
    if args.raw:
        kind, name = "RayJob", args.raw.rpartition("/")[2]
        state["objects"].pop(key_of(state["context"], kind, name))
        return "deleted"
    if args.what[0] == "namespace":
        return delete_namespace(state, args.what[1])
    for kind in (ALIASES[word] for word in args.what[0].split(",")):
        found = in_namespace(state, state["context"], kind)
        names = [key_of(state["context"], kind, name) for name in args.what[1:]]
        lost = [name for name in names if name not in found]
        if lost and not args.ignore_not_found:
            raise missing(kind, lost[0].rpartition("/")[2])
        for key in found if args.all else set(names) - set(lost):
            remove(state, key)
    if in_namespace(state, state["context"], "RayCluster"):
        raise RefusedError("error: timed out waiting for the condition on rayservices/citeray")
    return "deleted"


def delete_namespace(state: Object, name: str) -> str:
    if name not in state["namespaces"]:
        raise missing("namespace", name)
    if in_namespace(state, name, "RayCluster"):
        raise RefusedError("error: timed out waiting for the condition: rayclusters has finalizers")
    for key in in_namespace(state, name):
        del state["objects"][key]
    del state["namespaces"][name]
    return f'namespace "{name}" deleted'


def ready(state: Object, service: Object) -> bool:
    redis = key_of(state["context"], "StatefulSet", "citeray-redis") in state["objects"]
    keeps = "gcsFaultToleranceOptions" in service["spec"]["rayClusterConfig"]
    sound = state["plan"]["service"] and state["published"] and operator_runs(state)
    return bool(sound and not lacks(state, service) and (redis or not keeps))


def await_ready(state: Object, args: argparse.Namespace) -> str:
    [named] = args.what
    _, obj = find(state, named)
    if obj is None:
        raise missing(*named.split("/"))
    if getattr(args, "for") != "condition=Ready" or not ready(state, obj):
        raise RefusedError(f"error: timed out waiting for the condition on {named}")
    name = key_of(state["context"], "Service", "citeray-serve-svc")
    state["objects"][name] = {"kind": "Service", "metadata": {"name": "citeray-serve-svc"}}
    return f"{named} condition met"


def forward(state: Object, words: Sequence[str]) -> ThreadingHTTPServer:
    """A server at the port that `port-forward` names, which answers as the service would."""
    args = parser().parse_args(words)
    named, ports = args.what
    _, obj = find(state, named)
    if obj is None:
        raise missing(*named.split("/"))
    secret = state["objects"][key_of(state["context"], "Secret", "citeray-api-keys")]
    keys = base64.b64decode(secret["data"]["keys"]).decode().split()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = self.headers.get("Authorization", "").removeprefix("Bearer ")
            known = given in [key.partition(":")[2] for key in keys]
            body = (
                ANSWER | {"question": asked["question"]} if known else {"error": "no valid API key"}
            )
            self.send_response(200 if known and self.path == "/v1/answer" else 401)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Silent, as kubectl is."""

    return ThreadingHTTPServer(("127.0.0.1", int(ports.partition(":")[0])), Handler)


def run(state: Object, words: Sequence[str]) -> str:
    """What `kubectl` says to the words; raises RefusedError where it fails."""
    args = parser().parse_args(words)
    match args.command:
        case "create":
            return create(state, args)
        case "get":
            return get(state, args)
        case "delete":
            return delete(state, args)
        case "wait":
            return await_ready(state, args)
        case "label":
            _, name, label = args.what
            if name not in state["namespaces"]:
                raise missing("namespace", name)
            state["namespaces"][name].update([label.split("=")])
            return f"namespace/{name} labeled"
        case "config":
            state["context"] = args.namespace
            return "Context modified."
    job = args.selector.removeprefix("job-name=")
    if key_of(state["context"], "RayJob", job) not in state["objects"]:
        raise RefusedError(f"No resources found in {state['context']} namespace.")
    return "citeray index build"
