"""The configuration of Serve, the settings in the pods, and the scripts of the jobs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray._common.utils import import_attr
from ray.serve._private.build_app import build_app
from ray.serve.schema import ServeDeploySchema

from cluster.settings.settings import load_settings
from cluster.settings.used_models import used_models
from commands.cli import load_command
from serve.client.run_graph import PROXY_ENVIRONMENT
from tests.k8s.chart import (
    CASES,
    SIZES,
    all_pods,
    all_values,
    by_pod,
    groups,
    named,
    of_kind,
    render,
    settings_text,
    values_of,
)
from tests.small_index import citation, make_index

pytestmark = pytest.mark.model

MOUNTED = "/etc/citeray/settings.yaml"
# The commands of citeray in each script, apart from `download`.
SCRIPTS = {
    "build.sh": ["index build", "index verify"],
    "update.sh": ["index update"],
    "fill.sh": ["models pull"],
}


def test_serve_accepts_the_configuration_and_builds_the_graph(tmp_path: Path) -> None:
    make_index(tmp_path / "index", [citation(1, "Metformin.", "It lowers glucose.")])
    for name in SIZES:
        (service,) = of_kind(name, "RayService")
        given = yaml.safe_load(service["spec"]["serveConfigV2"])
        config = ServeDeploySchema.model_validate(given)
        # The schema ignores fields that it does not know.
        assert set(given) <= set(ServeDeploySchema.model_fields)
        # In kind, answers are taken from the evidence without a language model.
        apps = ["citeray"] if name == "kind" else ["citeray-llm", "citeray"]
        assert [app.name for app in config.applications] == apps
        assert {app.args["config"] for app in config.applications} == {MOUNTED}
        assert (config.http_options.host, config.http_options.port) == ("0.0.0.0", 8000)
        ports = {p["name"]: p["containerPort"] for group in groups(service).values()
                 for p in group["template"]["spec"]["containers"][0]["ports"]}  # fmt: skip
        assert ports["serve"] == 8000
        settings = tmp_path / f"{name}.yaml"
        settings.write_text(settings_text(name), encoding="utf-8")
        stages: dict[str, Any] = {}
        for app in config.applications:
            arguments = {"config": str(settings), "index.path": str(tmp_path / "index")}
            built = build_app(import_attr(app.import_path)(arguments), name=app.name)
            stages |= {deployment.name: deployment for deployment in built.deployments}
        models = set() if name == "kind" else {"LanguageModel", "Reranker"}
        wanted = {"Gateway", "Expander", "Encoder", "Writer", "Shard-0000", "Batches", "PubMed"}
        assert wanted | models <= set(stages)
        pools = {group["labels"]["citeray/pool"] for group in groups(service).values()}
        for stage in stages.values():
            if stage.name != "LanguageModel":
                selector = stage.ray_actor_options["label_selector"]
                assert selector["citeray/pool"] in pools, f"{name}: {stage.name}"


def test_settings_are_valid_and_name_mounted_folders_and_pinned_models(tmp_path: Path) -> None:
    problems = []
    for case in CASES:
        path = tmp_path / "settings.yaml"
        path.write_text(settings_text(case), encoding="utf-8")
        settings = load_settings(path)
        if not str(settings.index.path).startswith("s3://"):
            problems.append(f"{case}: index.path {settings.index.path}")
        for use, model in used_models(settings).items():
            kind, _, rest = model.partition(":")
            pinned = re.fullmatch(r"[0-9a-f]{40}", rest.partition("@")[2])
            if not (pinned if kind == "hf" else kind == "citeray" or "==" in rest):
                problems.append(f"{case}: {use}: {model} may change")
        gateway = f"RayService/citeray/{settings.serve.gateway.pool}"
        if pod := all_pods(case).get(gateway):
            mounts = {m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
            if not {str(settings.index.cache), str(settings.serve.batches.folder)} <= mounts:
                problems.append(f"{case}: folders of the settings are not mounted: {mounts}")
        hosts = yaml.safe_load(settings_text(case))["serve"]["http"]["hosts"]
        wanted = {"citeray-serve-svc.citeray.svc"}
        wanted |= {"citeray.example.org"} if case in ("gateway", "ingress") else set()
        if not wanted <= set(hosts):
            problems.append(f"{case}: hosts {hosts}")
    assert not problems, "\n".join(problems)


def test_scripts_of_the_jobs_use_valid_commands_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    for case in CASES:
        scripts = named(case, "ConfigMap", "citeray-settings")["data"]
        path.write_text(scripts["settings.yaml"], encoding="utf-8")
        sample = all_values(case)["corpus"]["source"] == "sample"
        for script in SCRIPTS:
            text = scripts[script]
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
            assert "set -eu\n" in text
            commands = [line.split() for line in text.splitlines() if line.startswith("citeray ")]
            given = [" ".join(words[1:3]) for words in commands if words[1] != "download"]
            assert given == SCRIPTS[script]
            downloads = [words for words in commands if words[1] == "download"]
            assert len(downloads) == (0 if sample or script == "fill.sh" else 1)
            for words in commands:
                load_settings(path, re.findall(r"--set (\S+)", " ".join(words)))
                if words[1] != "download":
                    assert words[words.index("--config") + 1] == MOUNTED
        # Sources given as the first files of the baseline leave a gap before the update files.
        gap = "--allow-gap" in scripts["update.sh"]
        assert gap == bool(all_values(case)["corpus"]["files"]), case


def test_pods_without_the_shared_cache_pull_their_own_models() -> None:
    found = {
        place: init["command"]
        for place, pod in all_pods("gateway").items()
        for init in pod["spec"].get("initContainers", [])
    }
    pull = ["citeray", "models", "pull", "--config", MOUNTED]
    assert found == {
        "RayService/citeray/models": [*pull, "--no-language-models"],
        "RayService/citeray/llm": [*pull, "--language-models"],
    }
    command = vars(load_command("models"))["commands"]["pull"]
    known = {o for option in command.params for o in (*option.opts, *option.secondary_opts)}
    assert {"--config", "--language-models", "--no-language-models"} <= known


def test_script_that_fills_the_model_cache_verifies_every_model(tmp_path: Path) -> None:
    script = named("small", "ConfigMap", "citeray-settings")["data"]["fill.sh"]
    assert script.splitlines()[-1].startswith("touch /models/.filled-")
    program = script.partition("<<'END'\n")[2].partition("\nEND\n")[0]
    entry = tmp_path / "pypi/a==1--model.txt"
    entry.mkdir(parents=True)
    (entry / "model.txt").write_text("damaged")
    digest = hashlib.sha256(b"weights").hexdigest()
    record = {"name": "pypi:a==1/model.txt", "path": "model.txt", "sha256": digest}
    (entry / ".entry.json").write_text(json.dumps(record))
    environment = {**os.environ, "CITERAY_MODELS": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "model.txt" in done.stderr


def test_ray_nodes_have_their_environment() -> None:
    def missing(case: str, where: str, template: dict[str, Any]) -> dict[str, Any]:
        if not where.startswith(("RayService", "RayJob")) or where.endswith("submitter"):
            return {}
        container = template["spec"]["containers"][0]
        given = {entry["name"]: entry.get("value") for entry in container["env"]}
        # Policies block the address of instance roles, for which S3 clients would wait 8 seconds.
        wanted: dict[str, str | None] = {
            "CITERAY_MODELS": "/models",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        if where.startswith("RayService"):
            wanted |= PROXY_ENVIRONMENT | {"CITERAY_API_KEYS": None}
        if all_values(case)["objectStore"]["enabled"]:
            wanted["AWS_ENDPOINT_URL"] = "http://citeray-object-store:9000"
        assert container["envFrom"][0]["secretRef"]["name"] == "citeray-stores"
        return {k: given.get(k) for k, v in wanted.items() if k not in given or given[k] != v}

    assert {pod: found for pod, found in by_pod(missing).items() if found} == {}
    open_network = str(render(values_of("pubmed", network={"policies": False})))
    assert "AWS_EC2_METADATA_DISABLED" not in open_network
    assert "NetworkPolicy" not in open_network
