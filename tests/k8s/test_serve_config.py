"""What a RayService hands to Serve: by Serve's own schema, and built as without a cluster."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray._common.utils import import_attr
from ray.serve._private.build_app import build_app as built_of
from ray.serve.schema import ServeDeploySchema

from cluster.settings.settings import Settings, load_settings
from tests.k8s.overlays import APPLIED, K8S, OVERLAYS, all_pods, of_kind
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


def settings_file(name: str) -> Path:
    return K8S / f"overlays/{name}/settings/settings.yaml"


def deployments(name: str, index: Path) -> dict[str, Any]:
    """Those of both applications, by name, built by their import paths from their arguments."""
    found = {}
    for application in serve_config(name).applications:
        builder = import_attr(application.import_path)
        arguments = {**application.args, "config": str(settings_file(name))}
        app = builder({**arguments, "index.path": str(index)})
        parts = built_of(app, name=application.name)
        found |= {d.name: d for d in parts.deployments}
    return found


@pytest.mark.parametrize("name", OVERLAYS)
def test_serve_takes_the_config(name: str) -> None:
    config = serve_config(name)
    assert [a.name for a in config.applications] == ["citeray-llm", "citeray"]
    assert {a.args["config"] for a in config.applications} == {MOUNTED}
    assert (config.http_options.host, config.http_options.port) == ("0.0.0.0", 8000)


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_settings_are_valid_and_name_what_is_mounted(name: str) -> None:
    settings = load_settings(settings_file(name))
    assert str(settings.index.path).startswith("s3://")
    mounts = {
        mount["mountPath"]
        for place, template in all_pods(name).items()
        if place.startswith("RayService") and "head" not in place
        for mount in template["spec"]["containers"][0]["volumeMounts"]
    }
    assert {str(settings.index.cache), str(settings.serve.batches.folder)} <= mounts


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_graph_is_built_from_its_import_paths(name: str, published_index: Path) -> None:
    found = deployments(name, published_index)
    stages = {"Gateway", "Expander", "Encoder", "Reranker", "Writer", "Shard-0000"}
    assert stages | {"Batches", "Turns", "PubMed", "LanguageModel"} <= set(found)


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_stage_is_told_a_pool_that_is_there(name: str, published_index: Path) -> None:
    (service,) = of_kind(name, "RayService")
    pools = {
        group["labels"]["citeray/pool"]
        for group in service["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    }
    for stage in deployments(name, published_index).values():
        if stage.name != "LanguageModel":
            chosen = stage.ray_actor_options["label_selector"]["citeray/pool"]
            assert chosen in pools, stage.name
    mounted = {
        place.rpartition("/")[2]
        for place, template in all_pods(name).items()
        if any(volume["name"] == "batches" for volume in template["spec"]["volumes"])
    }
    assert load_settings(settings_file(name)).serve.gateway.pool in mounted


@pytest.mark.parametrize("name", APPLIED)
def test_the_scripts_of_the_jobs_name_commands_and_settings_that_are_there(name: str) -> None:
    (scripts,) = [o["data"] for o in of_kind(name, "ConfigMap") if "build.sh" in o["data"]]
    settings: Settings | None = None
    for script in ("build.sh", "update.sh"):
        said = scripts[script].replace("\\\n", " ")
        subprocess.run(["sh", "-n"], input=said, text=True, check=True)
        commands = [line for line in said.splitlines() if line.startswith("citeray ")]
        assert commands
        for command in commands:
            overrides = re.findall(r"--set (\S+)", command)
            settings = load_settings(settings_file(name.split("/")[0]), overrides)
            words = command.split()
            if words[1] == "index":
                assert words[words.index("--config") + 1] == MOUNTED
                assert str(settings.index.path).startswith("s3://your-bucket/")
    (job,) = of_kind(name, "RayJob")
    assert job["spec"]["entrypoint"].removeprefix("sh /etc/citeray/") in scripts
