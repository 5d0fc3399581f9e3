"""Check the small files of an index: CURRENT, LEASE and the manifests of earlier versions."""

from __future__ import annotations

import hashlib
from pathlib import PurePath

from cluster.errors import IndexFormatError
from cluster.index.layout import CURRENT, LEASE, manifest_file
from cluster.index.lease_record import record_of
from cluster.index.manifest import Manifest, Pointer, read_pointer
from cluster.storage.conditional_store import Stamped
from cluster.storage.locations import Location, file_names
from pipelines.verify.note_findings import RESTORE, Finding


def check_pointer(index: Location) -> Pointer | Finding:
    """Return the content of CURRENT, or a finding if it is missing or damaged."""
    try:
        return read_pointer((index / CURRENT).read_bytes(), index / CURRENT)
    except IndexFormatError:
        return Finding("pointer", CURRENT, "damaged: it is not what was published", RESTORE)
    except OSError as error:
        versions = [n for n in file_names(index / "versions") if PurePath(n).match("v*.json")]
        if not isinstance(error, FileNotFoundError):
            message = f"cannot be read: {error.strerror or error}"
        elif versions:
            message = f"missing: no index here, but there are manifests {', '.join(versions)}"
        else:
            message = "missing: no index here"
        return Finding("pointer", CURRENT, message, RESTORE)


def check_lease(index: Location, pointer: Pointer) -> list[Finding]:
    """Return the findings for the lease file.

    It may only be missing if no version was published under a lease. Its numbers never decrease.
    """
    mend = "remove it if no command is changing the index: the next one creates it again"
    try:
        record = record_of(Stamped((index / LEASE).read_bytes(), ""), index)
    except FileNotFoundError:
        if not pointer.token:
            return []
        message = "missing, and versions were published under it"
        return [Finding("lease", LEASE, message, "the next build, update or compact creates it")]
    except IndexFormatError:
        return [Finding("lease", LEASE, "damaged: it is not what was written", mend)]
    except OSError as error:
        return [Finding("lease", LEASE, f"cannot be read: {error.strerror or error}", mend)]
    # A writer takes the lease before it changes CURRENT, so the lease's numbers are never lower.
    if record.token < pointer.token or record.version < int(pointer.version[1:]):
        message = f"it is older than {pointer.version}, which is published"
        return [Finding("lease", LEASE, message, mend)]
    return []


def check_earlier(index: Location, manifest: Manifest) -> list[Finding]:
    """Return findings for damaged manifests of earlier versions; missing ones were pruned."""
    findings = []
    for entry in manifest.history:
        file = manifest_file(entry.version)
        try:
            data = (index / file).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            fault = f"cannot be read: {error.strerror or error}"
        else:
            if hashlib.sha256(data).hexdigest() == entry.sha256:
                continue
            fault = "changed since it was published"
        mend = f"restore it from a copy; until then --as-of cannot show {entry.version}"
        findings.append(Finding("earlier", str(file), fault, mend))
    return findings
