"""Train in several workers of Ray Train; the only module of training that imports Ray.

transformers' Trainer finds the process group that Ray Train sets up: each worker takes its share of
every batch, and the gradients are averaged, so that all workers have the same model. The first
worker writes the checkpoint into the job's folder, which all must be able to read (on several
nodes, on a shared file system). After a failure, all resume from it.
"""

from __future__ import annotations

import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchConfig, TorchTrainer

from cluster.errors import CiteRayError
from pipelines.train.jobs import Job
from pipelines.train.run_job import take_steps
from pipelines.train.run_trainer import STATE

# Number of failures of workers, such as the loss of a node, before the run fails.
MOST_FAILURES = 3


def train_on_ray(job: Job, workers: int, gpus: bool) -> None:
    """Train `job` and leave its last checkpoint in its folder; Ray must be initialised.

    Uses `workers` processes, each with `encoder.threads` CPUs, and one GPU each if `gpus`. Raises
    CiteRayError if workers fail or are lost too often.
    """
    resources = {"CPU": job.base.threads} | ({"GPU": 1} if gpus else {})
    trainer = TorchTrainer(
        _work,
        train_loop_config={"job": job},
        torch_config=TorchConfig(backend="nccl" if gpus else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=gpus, resources_per_worker=resources
        ),
        run_config=RunConfig(
            name="ray-train",
            storage_path=str(job.folder / STATE),
            failure_config=FailureConfig(max_failures=MOST_FAILURES),
        ),
    )
    try:
        trainer.fit()
    except TrainingFailedError as error:
        raise CiteRayError(
            f"training failed in its workers ({str(error).splitlines()[0]}): run the same command "
            "again to resume from the last checkpoint"
        ) from error


def _work(config: dict[str, Job]) -> None:
    job = config["job"]
    torch.set_num_threads(job.base.threads)
    # Progress is in the job's log; the output of workers is not shown.
    take_steps(job, job.task(), lambda _: None)
