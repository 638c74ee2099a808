"""mkdocs hook, used by make docs, that adds pages from outside docs/ and converts links.

README and other files of the root folder become pages, notebooks are converted to Markdown, and the pages on settings
and on the Python interface are generated from the source. Links between files of the repository become links between
pages of the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section
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
"""Page names of files in the root folder."""
GENERATED = {"settings.md": "make_settings", "python.md": "make_python"}
"""Pages and the scripts in this folder whose function `page` returns their text."""
_BREAK = re.compile(r"(?<=[\u2014-\u2026\u3000-\u9fff\uff00-\uffef])\n(?=[\u2014-\u2026\u3000-\u9fff\uff00-\uffef])")
"""Line break inside Chinese text, which would be rendered as a space."""
_CHINESE = "中文"
"""Section of the navigation with the Chinese pages."""
_ENGLISH_ONLY = "英文"
"""Last subsection of the Chinese section, with the pages that have no Chinese version, under their English titles."""
_SUFFIX = re.compile(r"(\.zh)?\.md$")
_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^][]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Generate the same anchors as GitHub, so that links work in both places; Chinese characters are kept."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages that are not Markdown files in docs/."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for page, script in GENERATED.items():
        files.append(File.generated(config, page, content=runpy.run_path(str(ROOT / DOCS / f"{script}.py"))["page"]()))
    for path in sorted((ROOT / DOCS / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, _notebook_page(path.stem), content=cells(path)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Convert links to pages of the site; links to files that are only in the repository become plain text."""
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
        page_uri = posixpath.relpath(path, DOCS)
        if path.endswith(".ipynb"):
            page_uri = _notebook_page(Path(path).stem)
        return f"{image}[{text}]({posixpath.relpath(page_uri, posixpath.dirname(uri) or '.')}{anchor})"

    parts = _CODE.split(markdown)  # text and blocks of code in turn
    parts[::2] = [_BREAK.sub("", _LINK.sub(site_link, text)) for text in parts[::2]]
    return "".join(parts)


def on_nav(nav: Navigation, **_: object) -> None:
    """Link each page to the next and previous page in its language, and list untranslated pages for Chinese readers."""
    for page, following in pairwise(nav.pages):
        if _language(page) != _language(following):
            page.next_page = following.previous_page = None
    uris = {page.file.src_uri for page in nav.pages}
    _chinese(nav).children.append(
        Section(_ENGLISH_ONLY, [Link(page.title, page.url) for page in nav.pages if _twin_uri(page) not in uris])
    )


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
    """Restrict a page's navigation to its language, and add a link to the page in the other language."""
    own = _language(page)
    other = "en" if own == "zh" else "zh"
    urls = {each.file.src_uri: each.url for each in nav.pages}
    homes = {"en": urls["index.md"], "zh": urls["index.zh.md"]}
    links = {own: page.url, other: urls.get(_twin_uri(page), homes[other])}
    config.extra["homepage"] = homes[own]
    config.extra["alternate"] = [{**choice, "link": links[choice["lang"]]} for choice in config.extra["alternate"]]
    items = _chinese(nav).children if own == "zh" else [item for item in nav.items if item is not _chinese(nav)]
    return {**context, "nav": Navigation(items, nav.pages)}


def _chinese(nav: Navigation) -> Any:
    return next(item for item in nav.items if item.title == _CHINESE)


def _language(page: Page) -> str:
    return "zh" if page.file.src_uri.endswith(".zh.md") else "en"


def _twin_uri(page: Page) -> str:
    """Return the path of the page's version in the other language, which may not exist."""
    return _SUFFIX.sub(".md" if _language(page) == "zh" else ".zh.md", page.file.src_uri)


def _notebook_page(stem: str) -> str:
    """Return the page name of a notebook: NAME.md or NAME.zh.md."""
    return f"notebooks/{stem.removesuffix('_en')}.md".replace("_zh.md", ".zh.md")


def cells(path: Path) -> str:
    """Return a notebook as Markdown, with its code in Python blocks."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"
