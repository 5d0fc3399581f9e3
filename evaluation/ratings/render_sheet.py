"""Render the rating sheet as one HTML page that works offline and sends nothing.

The only script is inline, and the page's content security policy allows it by digest. Texts may
contain anything and are escaped.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from markupsafe import Markup

from evaluation.bioasq.read_bioasq import document_id
from evaluation.html_page import open_templates, replace_forbidden
from evaluation.ratings.rating_sheet import CRITERIA, SCALE, Sheet

TEMPLATES = Path(__file__).parent / "templates"


def render_sheet(sheet: Sheet) -> str:
    """Return the page as HTML; the output is deterministic."""
    page = open_templates(TEMPLATES)
    page.filters["document_id"] = document_id
    script = (TEMPLATES / "sheet.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = page.get_template("sheet.html").render(
        sheet=sheet,
        ratings=len(sheet.key) * len(CRITERIA),
        criteria=CRITERIA,
        scale=SCALE,
        # The digest covers exactly these characters between the tags.
        script=Markup(script),
        script_digest=digest,
    )
    return replace_forbidden(text)
