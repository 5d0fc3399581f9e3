"""Prints the lock of an environment: `python requirements/freeze.py path/to/pip`.

Leaves out what must not be installed on a CPU machine: torchvision, torchaudio and
torchcodec, whose wheels there are built for another torch and break `import
transformers`; triton, a gigabyte that only GPU kernels use; openvino-telemetry, which
reports OpenVINO's use over the network; and torch, of which two builds will do
(torch-cpu.txt, torch-index.txt).
"""

import subprocess
import sys

LEFT_OUT = {
    *("torch", "torchvision", "torchaudio", "torchcodec", "triton"),
    *("openvino-telemetry", "pip", "citeray"),
}
# Without wheels for other processors, and not required on them.
X86_ONLY = {"intel-cmplr-lib-ur", "intel-openmp"}

HEAD = """\
# The whole set-up on a CPU machine, made by `make lock`; installed with --no-deps.
# Left out on purpose (requirements/freeze.py):
# {}.
# torch is in torch-cpu.txt or torch-index.txt.
""".format(", ".join(sorted(LEFT_OUT - {"pip", "citeray", "torch"})))


def main(pip: str) -> None:
    """Print `pip freeze` without what is LEFT_OUT."""
    frozen = subprocess.run(
        [pip, "freeze", "--all", "--exclude-editable"], capture_output=True, text=True, check=True
    )
    print(HEAD, end="")
    for line in frozen.stdout.splitlines():
        name = line.split("==")[0].split(" @ ")[0]
        if name.lower() in LEFT_OUT or line.startswith("#"):
            continue
        print(f'{line} ; platform_machine == "x86_64"' if name.lower() in X86_ONLY else line)


if __name__ == "__main__":
    main(sys.argv[1])
