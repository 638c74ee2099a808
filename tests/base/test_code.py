"""Tests that the digest changes only with code that can change results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anaphora.base import code
from anaphora.base.code import code_digest, modules_behind

MODULES = {
    "__init__.py": "",
    "scores/__init__.py": "",
    "scores/heads.py": '''
"""Scores."""
from typing import TYPE_CHECKING

from anaphora.model import attention

if TYPE_CHECKING:
    from anaphora.page import Page


def score(page: "Page") -> int:
    """The score."""
    return attention.weight() + 1
''',
    "model/__init__.py": "",
    "model/attention.py": """
def weight() -> int:
    from anaphora.base.numbers import ONE  # imported late

    return ONE
""",
    "base/__init__.py": "",
    "base/numbers.py": "ONE = 1\n",
    "page.py": "class Page: ...\n",
}
Change = Callable[[str, str, str], None]


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Change]:
    """Yield a function (file, old, new) that rewrites a file of a small package, whose digests are then computed."""
    package = tmp_path / "anaphora"
    for name, content in MODULES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(code, "_PACKAGE", package)
    monkeypatch.setattr(code, "_SOURCES", tmp_path)
    code._read.cache_clear()
    code._file.cache_clear()

    def rewrite(name: str, old: str, new: str) -> None:
        content = (package / name).read_text(encoding="utf-8")
        assert old in content
        (package / name).write_text(content.replace(old, new), encoding="utf-8")
        code._read.cache_clear()

    yield rewrite
    code._file.cache_clear()


def test_comments_docstrings_and_layout_do_not_change_the_digest(change: Change) -> None:
    before = code_digest("anaphora.scores")
    change("scores/heads.py", '"""Scores."""', '"""Scores of heads."""\n# A comment.\n')
    change("scores/heads.py", '    """The score."""\n', "")
    change("scores/heads.py", "weight() + 1", "weight()+1  # one more")
    change("model/attention.py", "  # imported late", "")
    assert code_digest("anaphora.scores") == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("scores/heads.py", "weight() + 1", "weight() + 2"),
        ("model/attention.py", "return ONE", "return -ONE"),
        ("base/numbers.py", "ONE = 1", "ONE = 2"),
    ],
)
def test_a_change_in_a_module_or_in_what_it_imports_directly_or_not_changes_the_digest(
    name: str, old: str, new: str, change: Change
) -> None:
    before = code_digest("anaphora.scores")
    change(name, old, new)
    changed = code_digest("anaphora.scores")
    assert changed != before
    change(name, new, old)
    assert code_digest("anaphora.scores") == before


def test_what_the_type_checker_alone_imports_and_what_nothing_imports_do_not_count(change: Change) -> None:
    before = code_digest("anaphora.scores")
    change("page.py", "class Page: ...", "class Page:\n    number = 1")
    assert code_digest("anaphora.scores") == before
    assert code_digest("anaphora.model") != code_digest("anaphora.scores")


def test_the_digest_of_evidence_covers_the_model_and_the_batches() -> None:
    names = {path.relative_to(code._PACKAGE).as_posix() for path in modules_behind("anaphora.analysis")}
    assert {"model/attention.py", "model/prediction.py", "data/batches/batching.py", "base/batch.py"} <= names
    assert not any(name.startswith(("report/", "commands/", "training/")) for name in names)
