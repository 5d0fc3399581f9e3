"""Puts every package below `citeray` in the wheel, so that no name of ours meets one of a user's.

In the source tree, and where it is installed with --editable, they are top-level packages.
"""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PACKAGES = ("cluster", "commands", "configs", "evaluation", "pipelines", "planning", "serve")
IMPORT = re.compile(rf"^([ \t]*(?:from|import) )(?=(?:{'|'.join(PACKAGES)})\b)", re.MULTILINE)


class BelowCiteray(build_py):
    """Moves what was built below `citeray`, imports included."""

    def run(self) -> None:
        """Build as usual, then move unless this is an editable install."""
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib) / "citeray"
        for name in PACKAGES:
            shutil.rmtree(package / name, ignore_errors=True)
            shutil.move(package.parent / name, package / name)
        for file in package.rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            file.write_text(IMPORT.sub(r"\1citeray.", text), encoding="utf-8")


setup(
    packages=[
        "citeray",
        *find_packages(include=[f"{n}*" for n in PACKAGES], exclude=["commands.package"]),
    ],
    package_dir={"citeray": "commands/package"},
    package_data={"citeray": ["py.typed"]},
    cmdclass={"build_py": BelowCiteray},
)
