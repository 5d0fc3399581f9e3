"""Build and run images with buildah, on a Debian made by mmdebstrap, without a registry."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.images.containerfile import FILES, ROOT, copied

BASE = "localhost/debian-python:3.11"
MISSING = [name for name in ("buildah", "mmdebstrap", "ip") if shutil.which(name) is None]
WANTED = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="making a Debian and mounting it takes root"),
]
DEMO = ["citeray", "demo", "--json", "--set", "llm.kind=none"]
# Runs a command as compose.yaml and the manifests do: a read-only root with four writable folders,
# user 10001, no new privileges. `$1` is the root, `$2` the folder for /models, then the command.
RUN = """
root=$1 models=$2; shift 2
mount --make-rprivate /
ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for folder in tmp app/.citeray home/citeray; do
  mount -t tmpfs -o mode=1777 tmpfs "$root/$folder"
done
mount --bind "$models" "$root/models"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec=10001:10001 --groups=10001 "$root" "$@"
"""


def pip_settings() -> tuple[str, list[Path]]:
    """Return this machine's pip settings as a pip.conf, and the local paths in them."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings: dict[str, str] = {}
    paths = set()
    for line in listed.splitlines():
        key, _, quoted = line.partition("=")
        value = ast.literal_eval(quoted)
        # pip lists the environment's settings first, and they take precedence.
        settings.setdefault(key.rpartition(".")[2], value.replace("\n", "\n  "))
        for word in value.split():
            path = Path(word.removeprefix("file://"))
            if path.is_absolute() and path.exists():
                # The pages of a local index link to files next to them.
                paths.add(path.parent if word.startswith("file://") else path)
    lines = [f"{key} = {value}\n" for key, value in settings.items()]
    return "".join(["[global]\n", *lines]), sorted(paths)


def make_context(name: str, folder: Path) -> Path:
    """Copy the files that an image copies, including the locks, to `folder`; return it."""
    for source in {source for source, _ in copied(FILES[name])}:
        target = folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, target)
    return folder


def check_demo(done: subprocess.CompletedProcess[str]) -> None:
    """Check that `DEMO` succeeded and that each answer has citations."""
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout)
    assert [answer["verdict"] for answer in answers] == ["answered"] * 3
    for answer in answers:
        assert answer["ideal"]
        assert all(sentence["pmids"] for sentence in answer["ideal"])
    print("\n".join(answer["ideal"][0]["text"] for answer in answers))


class Engine:
    """Buildah with its own storage in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def buildah(self, *arguments: str) -> str:
        """Return the standard output of a buildah command."""
        storage = ["--root", str(self.folder / "storage"), "--runroot", str(self.folder / "run")]
        done = subprocess.run(
            ["buildah", *storage, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    def make_base(self) -> None:
        """Create the image `BASE`: a Debian with Python 3.11 from this machine's Debian mirror."""
        root = self.folder / "base"
        include = "--include=ca-certificates,python3-venv"
        # As in Docker's images of Debian: dpkg does not flush each file to disk, and apt fetches no
        # translations.
        options = ["--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"', include]
        command = ["mmdebstrap", "--variant=minbase", *options, "bookworm", str(root)]
        subprocess.run(command, check=True, capture_output=True)
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
        for folder in ("var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / folder)
            (root / folder).mkdir()
        name = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", name, str(root), "/")
        self.buildah("commit", "--quiet", "--rm", name, BASE)
        shutil.rmtree(root)

    def build(self, name: str, context: Path, **arguments: str) -> None:
        """Build the image `name` from images/Containerfile.`name` with this machine's pip settings.

        The settings are passed as a secret, and the folders that they name are mounted.
        """
        conf, volumes = pip_settings()
        (self.folder / "pip.conf").write_text(conf, encoding="utf-8")
        given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        mounts = [f"--volume={path}:{path}:ro" for path in volumes]
        self.buildah(
            *("build", "--isolation", "chroot", "--build-arg", f"BASE={BASE}"),
            *("--secret", f"id=pip,src={self.folder / 'pip.conf'}", *given, *mounts),
            *("-f", f"images/Containerfile.{name}", "-t", f"citeray:{name}", str(context)),
        )

    def inspect(self, name: str) -> dict[str, Any]:
        """Return buildah's description of an image."""
        return json.loads(self.buildah("inspect", "--type", "image", f"citeray:{name}"))

    def layers(self, name: str) -> list[int]:
        """Return the uncompressed size of each layer in bytes, starting with the base."""
        kept = json.loads((self.folder / "storage/overlay-layers/layers.json").read_text())
        sizes = {layer["diff-digest"]: layer["diff-size"] for layer in kept if "diff-size" in layer}
        return [sizes[digest] for digest in self.inspect(name)["OCIv1"]["rootfs"]["diff_ids"]]

    def run(
        self, name: str, models: Path, command: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the image as user 10001, with a read-only root and no network."""
        container = self.buildah("from", "--pull-never", f"citeray:{name}").strip()
        root = self.buildah("mount", container).strip()
        config = self.inspect(name)["OCIv1"]["config"]
        alone = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        inside = ["env", "-i", "-C", config["WorkingDir"], "HOME=/home/citeray", *config["Env"]]
        try:
            return subprocess.run(
                [*alone, "sh", "-euc", RUN, "sh", root, str(models), *inside, *command],
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            self.buildah("rm", container)

    def remove(self) -> None:
        """Remove every image, container and mount, and the folder."""
        self.buildah("rm", "--all")
        self.buildah("rmi", "--all", "--force")
        subprocess.run(["umount", "--recursive", str(self.folder / "storage/overlay")], check=False)
        shutil.rmtree(self.folder)


@contextmanager
def built_image(name: str, folder: Path, **arguments: str) -> Iterator[Engine]:
    """Build the image `name` in `folder`, and remove everything at the end of the block."""
    engine = Engine(folder)
    try:
        engine.make_base()
        engine.build(name, make_context(name, folder / "context"), **arguments)
        yield engine
    finally:
        engine.remove()
