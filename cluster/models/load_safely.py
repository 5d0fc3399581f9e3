"""Options to load model folders safely: local files only, no pickles, no remote code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from cluster.errors import InputError, cut, one_line

# Always explicit: without trust_remote_code, transformers would prompt at the terminal.
SAFELY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
SAFE_WEIGHTS: dict[str, Any] = {**SAFELY, "use_safetensors": True}
# Errors of the loaders for a folder that is damaged, incomplete, or requires its own code.
LOAD_ERRORS = (OSError, ValueError, RuntimeError, KeyError, TypeError, SafetensorError)


def unloadable(folder: Path | str, kind: str, error: Exception) -> InputError:
    """Return the error for a `folder` that does not load as `kind`, such as "an encoder"."""
    if "trust_remote_code" in str(error):
        return InputError(
            f"{folder} does not load as {kind}: it asks for code of its own to be run, which is "
            "never done; name a model of an architecture that transformers has"
        )
    return InputError(
        f"{folder} does not load as {kind} ({cut(one_line(str(error)))}): fetch it again with "
        "`models pull`, or name another model"
    )
