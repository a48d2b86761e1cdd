"""An executed notebook as one HTML page that needs neither a network nor a script."""

from __future__ import annotations

import re
from typing import Any

# nbconvert's template loads RequireJS, MathJax and Mermaid from the network. Nothing here needs them: widgets are shown as
# tables and images, equations are written in plain characters.
SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
REMOTE = re.compile(r"<link\b[^>]*https?://[^>]*>", re.IGNORECASE)


def page(notebook: Any, title: str) -> str:
    """The notebook as HTML, images embedded."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(embed_images=True, exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": title}})
    return REMOTE.sub("", SCRIPT.sub("", body))
