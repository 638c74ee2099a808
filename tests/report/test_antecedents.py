from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from anaphora.analysis.tasks import antecedent_rules, antecedent_selection
from anaphora.base.translation import spoken_in
from anaphora.report.antecedents import (
    CHOICE_SETS,
    FORM_COLUMNS,
    RULES,
    antecedent_figure,
    comparison_sentence,
    terminal_tables,
)
from anaphora.report.numbers import NOT_MEASURED
from anaphora.report.wording import mention_type_names


def metrics(
    head: float = 0.6, nearest: float = 0.3, width: float = 0.05, columns: tuple[str, ...] = FORM_COLUMNS
) -> Any:
    rows: list[dict[str, Any]] = []

    def row(selector: str, field: str, column: str, value: float, place: int | None) -> None:
        ends = {"low": None, "high": None} if not width else {"low": value - width, "high": value + width}
        rows.append(
            {
                "subset": "all", "selector": selector, "field": field, "column": column, "items": 1234,
                "layer": place, "head": place, "accuracy": value, **ends,
            }
        )  # fmt: skip

    for column in columns:
        for number, name in enumerate(RULES):
            row(name, "mentions", column, nearest + number / 10, None)
        for field in CHOICE_SETS:
            row("best head", field, column, head, 3)
            row("one head", field, column, head - 0.1, 11)
            row("untrained", field, column, 0.1, None)
    return {"run": "a run", "split": "test", "rows": rows}


def printed(selections: Any) -> str:
    console = Console(file=io.StringIO(), width=170)
    for line in terminal_tables(selections):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_names_agree_with_the_measures() -> None:
    assert antecedent_selection.CHOICE_SETS == CHOICE_SETS
    assert antecedent_selection.FORM_COLUMNS == FORM_COLUMNS
    assert tuple(antecedent_rules.RULES) == RULES


def test_the_table_shows_every_row_in_full_and_the_papers_below() -> None:
    text = printed(metrics())
    assert text.count("60.0 [55.0, 65.0] 3-3") == 5 * 3
    assert text.count("50.0 [45.0, 55.0] 11-11") == 5 * 3
    assert "…" not in text
    (paper,) = (line.split()[-5:] for line in text.splitlines() if "one head of BERT-base" in line)
    assert paper == ["65", "64", "73", "58", NOT_MEASURED]
    assert "OntoNotes: other texts, mentions and rules" in text


@pytest.mark.parametrize(
    ("language", "titles"),
    [("en", ("form: other nouns", "genre: –", "own: a=b")), ("zh", ("词类：普通名词", "体裁：–", "own：a=b"))],
)
def test_a_table_on_one_value_of_a_factor_names_both_in_words(language: str, titles: tuple[str, ...]) -> None:
    rows = metrics()["rows"]
    subsets = [{**row, "subset": subset} for subset in ("form=nominal", "genre=", "own=a=b") for row in rows]
    with spoken_in(language):
        tables = [part for part in terminal_tables({**metrics(), "rows": subsets}) if isinstance(part, Table)]
    assert tuple(str(table.title) for table in tables) == titles


def test_missing_columns_are_left_out() -> None:
    tables = [line for line in terminal_tables(metrics(columns=("all", "pronoun"))) if isinstance(line, Table)]
    assert [str(column.header).split("\n")[0] for column in tables[0].columns] == ["", "all mentions", "pronouns"]


@pytest.mark.parametrize("field", CHOICE_SETS)
@pytest.mark.parametrize(
    ("head", "width", "sentence"),
    [
        (0.6, 0.05, "beats the nearest mention with disjoint intervals: 60.0 [55.0, 65.0] against 30.0"),
        (0.1, 0.05, "is worse than the nearest mention, with disjoint intervals"),
        (0.35, 0.05, "layer 3 head 3 and the nearest mention have intervals that overlap"),
        (0.6, 0.0, "too few documents, or documents that are all alike, give no interval"),
        (0.6, 1e-12, "reaches 60.0, the nearest mention 30.0; too few documents, or documents that are all alike,"),
    ],
)
def test_the_sentence_says_what_the_intervals_say(head: float, width: float, sentence: str, field: str) -> None:
    assert sentence in comparison_sentence(metrics(head=head, width=width), field)


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en", {"nearest mention", "sieve of rules", "best untrained head", "best head, a word before it"}),
        ("zh", {"最近的提及", "多层筛选规则", "最好的未训练的头", "最好的头，前文的任一词"}),
    ],
)
def test_the_figure_names_heads_rules_and_columns_in_its_language(language: str, names: set[str]) -> None:
    with spoken_in(language):
        figure = antecedent_figure(metrics())
        columns = {f"{mention_type_names()[column]} (1,234)" for column in FORM_COLUMNS}
    written = {text.get_text() for axes in figure.axes for text in [*axes.texts, *axes.get_yticklabels()]}
    assert names | columns <= written
