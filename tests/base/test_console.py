from __future__ import annotations

import pytest
from rich.table import Table

from anaphora.base.console import console, print_table, say, working
from anaphora.base.messages import translation


def test_brackets_of_names_and_texts_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name")
    table.add_row("[/bold] [l](x) [red]a[/red]")
    print_table(table)
    console.print("[/x] in [outputs]")
    said = capsys.readouterr().out
    assert "[/bold] [l](x) [red]a[/red]" in said and "[/x] in [outputs]" in said


def test_lines_and_stages_are_reported_in_the_language_of_the_interface(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    class Status:
        """Keeps what a terminal would show beside its spinner."""

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
        with working("demo: reading the data") as progress:
            progress("untrained model 2 of 20")
        say("metrics.json: of version 1, read as version 2")
    assert shown == [
        *("demo: reading the data", "untrained model 2 of 20"),
        *("demo：正在读取数据", "第 2 个未训练的模型，共 20 个"),
    ]
    english, chinese = capsys.readouterr().out.splitlines()
    assert english == "metrics.json: of version 1, read as version 2"
    assert chinese == "metrics.json：是版本 1 的文件，按版本 2 读取"
