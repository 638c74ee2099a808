"""Headless Chromium: opens a page, and returns the result of a script on it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
_HARNESS = """<pre id="seen"></pre><script>(async (given) => {
  const at = (name) => document.getElementById(name);
  const pause = (time = 20) => new Promise((next) => setTimeout(next, time));
  for (let turn = 0; turn < 500 && !window.anaphora && !given.early; turn++) await pause();
  const use = async () => { BODY };
  const seen = await use().catch((problem) => ({ problem: String(problem.stack) }));
  at("seen").textContent = JSON.stringify(seen);
})(GIVEN)</script>"""
SMALL_TEXTS = """
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), small = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, text = texts.currentNode.textContent.trim();
    if (!text || element.closest("script, style, template, noscript, #seen")) continue;
    if (!element.getClientRects().length) continue;
    let size = parseFloat(getComputedStyle(element).fontSize);
    if (element.closest("svg")) { const way = element.getScreenCTM(); size *= Math.hypot(way.a, way.b); }
    if (size < 11) small.push(`${text}: ${size.toFixed(1)} px`);
  }
"""
"""Statements that collect all visible texts below 11 px in `small`."""

PARTED_MARKS = """
  // Marks at the wrong end of a line in a strip of words, with their neighbour, at many widths.
  const partedMarks = (strip) => {
    const parted = new Set(), words = [...strip.querySelectorAll("button, .word")];
    const place = (one) => one.getBoundingClientRect();
    for (let width = 200; width < 400; width += 6) {
      strip.style.width = `${width}px`;
      words.slice(1).forEach((word, number) => {
        const before = words[number], texts = [before, word].map((one) => one.firstChild.textContent);
        const isBroken = place(word).top >= place(before).bottom - 2;
        if (isBroken && (/^[“（「]$/.test(texts[0]) || /^[，。”）」.,]$/.test(texts[1]))) parted.add(texts.join(""));
      });
    }
    strip.style.width = "";
    return [...parted];
  };
"""
"""A function that narrows a strip of words and returns closing marks that begin a line, opening ones that end it."""


def in_browser(page: str, body: str, given: dict[str, Any], folder: Path, *options: str) -> Any:
    """Open a page, run the body of a script with the argument `given`, and return its result."""
    script = _HARNESS.replace("BODY", body).replace("GIVEN", json.dumps(given).replace("<", "\\u003c"))
    path = folder / "opened.html"
    path.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    done = subprocess.run(
        [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=60000", *options, "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr
    match = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None and match[1], done.stderr[-2000:]
    return json.loads(html.unescape(match[1]))
