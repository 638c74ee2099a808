"""Tests that the readers' files and licences are those in docs/corpora.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tiny_corpora import TINY, Tiny

from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.data.corpora.division import origin_of
from anaphora.settings.data import ControlledCorpus, Data, ExternalCorpus
from anaphora.settings.variants import VARIANTS

PAGE = (Path(__file__).parents[3] / "docs" / "corpora.md").read_text(encoding="utf-8")
SOURCES = {name: one for name, one in VARIANTS[Data].items() if issubclass(one, ExternalCorpus)}
OWN = {"jsonl", "clusters", "plain_text", "silver", "labelled_text"}  # anybody's files


def column(heading: str, after: str) -> dict[str, str]:
    """Return the cells of a column of the table after a line of the page, by the name after `data=` in the same row."""
    lines = PAGE[PAGE.index(after) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| corpus |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    kind, wanted = rows[0].index("`data=`"), rows[0].index(heading)
    return {row[kind].strip("`"): row[wanted] for row in rows[2:] if re.fullmatch(r"`\w+`", row[kind])}


def test_the_page_tells_the_licence_of_every_corpus_in_the_words_that_are_printed() -> None:
    printed = {name: origin_of(one(path="x")).licence for name, one in SOURCES.items() if name not in OWN}
    assert all(printed.values())
    assert column("licence as stated", "## Licences and papers") == printed


def test_files_of_ones_own_and_made_sentences_have_no_licence() -> None:
    settings = [ControlledCorpus(), *(SOURCES[name](path="x") for name in OWN)]
    assert {origin_of(one).licence for one in settings} == {""}


@pytest.mark.parametrize("name", SOURCES)
def test_where_nothing_is_the_files_that_the_corpus_wants_are_named(name: str, tmp_path: Path) -> None:
    settings = SOURCES[name](path=str(tmp_path / "nowhere"))
    files = origin_of(settings).files
    assert files
    with pytest.raises(UserError) as error:
        store.load(settings)
    assert str(error.value) == f"data.path ({settings.path}): there is no such file or folder; needed: {files}"


def test_the_files_that_the_page_names_are_those_of_the_message() -> None:
    listed = column("at `data.path`", "# Public corpora")
    assert len(listed) == 15
    for name, cell in listed.items():
        files = origin_of(SOURCES[name](path="x")).files
        assert [one for one in re.findall(r"`([^`]+)`", cell) if one not in files] == [], name


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_without_items_is_reported(name: str, tmp_path: Path) -> None:
    files = ["items.jsonl"]
    if name == "winobias":
        files = ["female_occupations.txt", "male_occupations.txt", "pro_stereotyped_type1.txt.dev"]
    folder = {"winogender": ["all_sentences.tsv", "templates.tsv"], "winobias": files, "litbank": ["a.ann", "a.txt"]}
    for content in ("", "\n"):
        for file in folder.get(name, ["items.tsv" if name in ("ag_news", "chnsenticorp", "sst2") else "items.jsonl"]):
            (tmp_path / file).write_text(content)
        path = tmp_path if name in folder else next(tmp_path.iterdir())
        with pytest.raises(UserError) as error:
            store.load(SOURCES[name](path=str(path)))
        assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY)
def test_every_file_of_a_corpus_is_among_those_that_it_is_read_from_and_no_other_is(tiny: Tiny, tmp_path: Path) -> None:
    tiny.write(tmp_path)
    (tmp_path / "table.md").write_text("x")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "metrics.json").write_text("{}")
    assert {path.name for path in store.files_read(tiny.settings(tmp_path)).values()} == set(tiny.files)
