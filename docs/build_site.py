"""What MkDocs calls as it builds the site: generated references, and pages from elsewhere.

Links in Markdown are relative to the file that they stand in, as GitHub reads them. A page that
lies outside docs/ and is in `PAGES` becomes a page of the site; a link to any other file outside
docs/ is an error, which `mkdocs build --strict` reports.
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    # MkDocs loads this file by its path, with the repository not among Python's folders.
    sys.path.insert(0, str(ROOT))

from docs.generate_reference import GENERATED  # noqa: E402

log = logging.getLogger("mkdocs.citeray")

# The repository's file, and its place in the site.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "k8s/README.md": "kubernetes-walk-through.md",
    "pipelines/sample/README.md": "sample-corpus.md",
}
MARKER = re.compile(r"^<!-- generated: (\w+) -->$", re.M)
LINK = re.compile(r"(?<=\]\()([^)\s#]*)(#[^)\s]*)?(?=\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside docs/."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is generated, and point links to where the site has their files."""
    path = page.file.src_uri
    source = next((source for source, to in PAGES.items() if to == path), f"docs/{path}")
    filled = MARKER.sub(lambda marker: GENERATED[marker[1]](), markdown)
    return LINK.sub(lambda link: site_link(source, path, link[1]) + (link[2] or ""), filled)


def site_link(source: str, where: str, target: str) -> str:
    """`target`, as it stands in the repository's file `source`, for the site's page `where`."""
    if not target or "://" in target or target.startswith("mailto:"):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    there = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if there is None:
        log.warning("%s links to %s, which is no page of the site", source, path)
        return target
    return posixpath.relpath(there, posixpath.dirname(where) or ".")
