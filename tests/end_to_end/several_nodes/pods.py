"""Ray nodes that have their own network, process table and folder, as pods do.

    test ── bridge ──┬── 10.77.0.1 head
                     ├── 10.77.0.2 worker
                     └── 10.77.0.3 worker

Namespaces are unnamed, so that they and their links disappear with their processes.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.models.store import ModelStore
from serve.client.run_graph import PROXY_ENVIRONMENT
from tests.end_to_end.command import BIN, ROOT, environment, short_folder, start
from tests.end_to_end.waiting import await_that
from tests.network_namespaces import OWN, Namespace, run

GCS_PORT = 6379
BRIDGE_ADDRESS = "02:00:00:00:00:01"
MEMORY = 128 << 20
# Killing the first process of a PID namespace kills the whole pod.
POD = ("setpriv", "--pdeathsig", "KILL", "unshare", "-n", "-pf", "--mount-proc", "--kill-child")
# Each pod mounts its own folder at the same path.
BOOT = """
read _
mount --bind "$1" "$2" && ip link set lo up && ip addr add "$3/24" dev eth0 &&
ip link set eth0 up && ip route add default via 10.77.0.254 || exit 1
shift 3
"$@"
"""
MAKE_LINKS = "ip link add pod0 type veth peer name eth0 && ip link add bridge type bridge"
# Ray declares a node dead after some 10 s instead of over a minute.
HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}
# For tests of lost nodes, so that no node converts a model: the model cache of this machine.
SHARED_MODELS = {"CITERAY_MODELS": str(ModelStore(pins={}).root)}
# For tests that lose no node, so that a pause of a busy machine is not taken for a loss.
NO_LOSS = {"RAY_health_check_failure_threshold": "60"}


def require_namespaces() -> None:
    """Skip the test without the tools or the right to create namespaces and links."""
    try_out = [*POD, "sh", "-c", MAKE_LINKS]
    try:
        done = subprocess.run(try_out, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"needs setpriv, unshare and ip: {error}")
    if done.returncode:
        pytest.skip(f"needs the right to make namespaces (root): {done.stderr.strip()}")


class Network(Namespace):
    """A network with a bridge, on which the test has the last address."""

    def __init__(self) -> None:
        super().__init__()
        # A fixed MAC address. Otherwise the bridge takes that of a pod's link, and after the pod is
        # gone, the other pods send to the old address until their ARP caches expire.
        self.ip("link", "add", "bridge", "address", BRIDGE_ADDRESS, "type", "bridge")
        self.ip("addr", "add", "10.77.0.254/24", "dev", "bridge")
        self.ip("link", "set", "bridge", "up")

    def ip(self, *words: str) -> None:
        self.run("ip", *words)


@dataclass
class Pod:
    """One node. After `kill`, it can be started again with an empty folder."""

    number: int
    folder: Path
    variables: Mapping[str, str]
    network: Network
    process: subprocess.Popen | None = None
    # nftables rules of the pod's network; "" allows everything.
    rules: str = ""

    @property
    def address(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def own_folder(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.{self.number}")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.{self.number}.log")

    @property
    def link(self) -> str:
        return f"pod{self.number}"

    def start(self, *options: str) -> None:
        shutil.rmtree(self.own_folder, ignore_errors=True)
        self.own_folder.mkdir()
        facts = (str(self.own_folder), str(self.folder), self.address)
        ray = [str(BIN / "ray"), "start", *options, "--block", "--disable-usage-stats"]
        # No driver prints the logs of its workers, so no process has to send them.
        ray += ["--include-log-monitor=false"]
        ray += [f"--node-ip-address={self.address}", f"--object-store-memory={MEMORY}"]
        with self.network.entered():
            with self.log.open("wb") as log:
                boot = [*POD, "sh", "-c", BOOT, "sh", *facts, *ray]
                pipe = subprocess.PIPE
                self.process = start(boot, self.variables, stdin=pipe, stdout=log, stderr=log)
            self._connect(self.process)

    def _connect(self, process: subprocess.Popen) -> None:
        """Connect the pod to the bridge as soon as it has its own network."""
        network = Path(f"/proc/{process.pid}/ns/net")
        await_that(lambda: network.readlink() != Path(OWN).readlink())
        # The kernel keeps a lost pod's link until its last connection has timed out, for minutes.
        with suppress(OSError):
            run("ip", "link", "delete", self.link)
        pair = ("type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
        run("ip", "link", "add", self.link, *pair)
        run("ip", "link", "set", self.link, "master", "bridge", "up")
        if self.rules:
            run("nsenter", "-t", str(process.pid), "-n", "nft", "-f", "-", given=self.rules)
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.close()

    def await_started(self) -> None:
        await_that(self._started, lambda: self.log.read_text(errors="replace"))

    def _started(self) -> bool:
        assert self.runs(), self.log.read_text(errors="replace")
        return "Ray runtime started" in self.log.read_text(errors="replace")

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return `command` wrapped so that it runs inside the pod."""
        first = str(child_of(self._pid))
        # Entering the mount namespace loses the working directory.
        back = ["env", f"--chdir={Path.cwd()}"]
        return ["nsenter", "-t", first, "-n", "-p", "-m", *back, *command]

    @property
    def _pid(self) -> int:
        assert self.process
        return self.process.pid

    def end(self, grace_s: float) -> None:
        """Send SIGTERM as Kubernetes does; fail if the pod has not ended after `grace_s`."""
        assert self.process
        os.kill(child_of(child_of(self._pid)), signal.SIGTERM)
        self.process.wait(grace_s)

    def kill(self) -> None:
        """Kill every process of the pod at once, as a power failure does."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def cut(self) -> None:
        self.network.ip("link", "set", self.link, "down")

    def mend(self) -> None:
        self.network.ip("link", "set", self.link, "up")


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@dataclass
class Pods:
    """A head without CPUs, and workers. `driver` is the environment of a driver."""

    folder: Path
    driver: dict[str, str]
    head: Pod
    workers: list[Pod]
    cpus: int
    # Further options of `ray start`.
    head_options: Sequence[str] = ("--include-dashboard=false",)
    worker_options: Sequence[str] = ()

    def start_head(self) -> None:
        options = [f"--temp-dir={self.folder}", f"--port={GCS_PORT}", "--num-cpus=0"]
        self.head.start("--head", *options, *self.head_options)

    def start_worker(self, worker: Pod) -> None:
        joined = (f"--address={self.head.address}:{GCS_PORT}", f"--num-cpus={self.cpus}")
        worker.start(*joined, *self.worker_options)

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess:
        """Run a Python module in the head's pod; it must succeed."""
        done = subprocess.run(
            self.head.inside([sys.executable, "-m", *words]),
            capture_output=True, text=True, check=False, timeout=timeout_s, cwd=ROOT,
            env=environment(self.driver),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    def deploy(self, overrides: Sequence[str]) -> None:
        """Deploy a graph from the head's pod."""
        self.run("tests.end_to_end.several_nodes.graph", "deploy", *overrides)

    def lost(self) -> int:
        """Return how many nodes the head has declared dead since it was started."""
        [log] = self.head.own_folder.glob("session_2*/logs/gcs_server.out")
        return log.read_text(errors="replace").count("Node is dead because the health check")

    def require_workers(self) -> None:
        """Start the workers again that were killed, or ended after Ray declared them dead."""
        missing = [worker for worker in self.workers if not worker.runs()]
        for worker in missing:
            self.start_worker(worker)
        for worker in missing:
            worker.await_started()


@contextmanager
def pods(more: Mapping[str, str], cpus: int = 2) -> Iterator[Pods]:
    """Start three nodes that require a token, with `cpus` per worker and `more` variables.

    Skip the test without the right to create namespaces.
    """
    require_namespaces()
    with closing(Network()) as network, pods_on(network, more, cpus) as found:
        yield found


@contextmanager
def pods_on(
    network: Network,
    more: Mapping[str, str],
    cpus: int = 2,
    *,
    numbers: Sequence[int] = (1, 2, 3),
    rules: Mapping[int, str] | None = None,
    **options: Sequence[str],
) -> Iterator[Pods]:
    """Start nodes as `pods` does on an existing network, with optional rules by pod number.

    `options` are head_options and worker_options.
    """
    auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with short_folder() as folder:
        # As in the image and the chart: after a node is lost, the driver's folder is unknown there.
        variables = {**auth, **HEALTH, **PROXY_ENVIRONMENT, "PYTHONPATH": str(ROOT), **more}
        # In the folder of each pod, as without a shared model cache.
        variables.setdefault("CITERAY_MODELS", str(folder / "models"))
        head, *workers = (
            Pod(number, folder, variables, network, rules=(rules or {}).get(number, ""))
            for number in numbers
        )
        driver = {**auth, "RAY_ADDRESS": f"{head.address}:{GCS_PORT}"}
        found = Pods(folder, driver, head, workers, cpus, **options)
        try:
            found.start_head()
            head.await_started()
            found.require_workers()
            yield found
        finally:
            for pod in (*workers, head):
                pod.kill()
                shutil.rmtree(pod.own_folder, ignore_errors=True)
                pod.log.unlink(missing_ok=True)
