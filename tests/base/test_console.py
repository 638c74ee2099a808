from __future__ import annotations

import pytest
from rich.table import Table

from anaphora.analysis.evidence.headline import untrained_seeds
from anaphora.base import translation
from anaphora.base.console import console, print_table, working


def test_brackets_of_names_and_texts_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name")
    table.add_row("[/bold] [l](x) [red]a[/red]")
    print_table(table)
    console.print("[/x] in [outputs]")
    said = capsys.readouterr().out
    assert "[/bold] [l](x) [red]a[/red]" in said and "[/x] in [outputs]" in said


def test_stages_are_reported_in_the_language_of_the_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Status:
        """Stub of a terminal's spinner that records its messages."""

        def __init__(self, stage: str) -> None:
            shown.append(stage)

        def __enter__(self) -> Status:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self, stage: str) -> None:
            shown.append(stage)

    monkeypatch.setattr(console, "status", Status)
    for language in ("en", "zh"):
        monkeypatch.setenv(translation.VARIABLE, language)
        with working(translation._("reading the data")) as progress:
            list(untrained_seeds(1, progress))
    assert shown == [*("reading the data", "untrained model 1 of 1"), *("正在读取数据", "第 1 个未训练的模型，共 1 个")]
