"""What the site takes from outside docs/, or in another form: a hook of mkdocs, run by make docs.

README and its neighbours become pages, notebooks become pages of their cells. Links between all of them are written as
a reader of the repository needs them, and pointed at the site's pages here.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parent.parent
DOCS = "docs"
FROM_ROOT = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
}
"""Files beside docs/ and the pages that they become."""
_BREAK = re.compile(r"(?<=[\u2014-\u2026\u3000-\u9fff\uff00-\uffef])\n(?=[\u2014-\u2026\u3000-\u9fff\uff00-\uffef])")
"""A line's end inside Chinese text, which would be shown as a blank."""
_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^][]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Anchors as GitHub makes them, so that one link serves in both places; Chinese headings keep their characters."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that are no Markdown below docs/."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for path in sorted((ROOT / DOCS / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=cells(path)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point every link at a page of the site; what only the repository has is named without a link."""
    uri = page.file.src_uri
    origin = {new: old for old, new in FROM_ROOT.items()}.get(uri, f"{DOCS}/{uri}")

    def site_link(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if ":" in target or not target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        if path in FROM_ROOT:
            path = f"{DOCS}/{FROM_ROOT[path]}"
        if not path.startswith(f"{DOCS}/"):
            return text
        page_uri = re.sub(r"\.ipynb$", ".md", posixpath.relpath(path, DOCS))
        return f"{image}[{text}]({posixpath.relpath(page_uri, posixpath.dirname(uri) or '.')}{anchor})"

    parts = _CODE.split(markdown)  # text and blocks of code in turn
    parts[::2] = [_BREAK.sub("", _LINK.sub(site_link, text)) for text in parts[::2]]
    return "".join(parts)


def cells(path: Path) -> str:
    """A notebook as Markdown: its text, and its code as blocks of Python."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"
