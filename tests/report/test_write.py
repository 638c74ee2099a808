from __future__ import annotations

import json
import os
import re
import time
import zlib
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from anaphora.base.errors import UserError
from anaphora.base.files import write_csv, write_json
from anaphora.report.figures import maps
from anaphora.report.figures.files import save_figure

TEXT = "那天 下午 ， 小红 遇见 了 Bella ， 因为 她 很 高兴 。"
SENTENCE = TEXT.split()


@pytest.fixture(scope="module")
def figure() -> Figure:
    weights = [0.05] * len(SENTENCE)
    return maps.pronoun_row_figure(SENTENCE, weights, 9, [3], [6], "代词“她” layer 2 head 0")


@pytest.fixture(scope="module")
def files(figure: Figure, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return {path.suffix: path.read_bytes() for path in save_figure(figure, tmp_path_factory.mktemp("a") / "row.v1")}


def streams(pdf: bytes) -> list[bytes]:
    """Return the uncompressed streams of a PDF."""
    found = []
    for start in re.finditer(rb"stream\r?\n", pdf):
        try:
            found.append(zlib.decompressobj().decompress(pdf[start.end() :]))
        except zlib.error:
            continue
    return found


@pytest.mark.filterwarnings("error")
def test_a_figure_is_written_in_all_three_formats(figure: Figure, tmp_path: Path) -> None:
    paths = save_figure(figure, tmp_path / "new" / "row")
    assert [path.name for path in paths] == ["row.png", "row.svg", "row.pdf"]
    assert [path.read_bytes()[:4] for path in paths] == [b"\x89PNG", b"<?xm", b"%PDF"]
    assert sorted(os.listdir(tmp_path / "new")) == ["row.pdf", "row.png", "row.svg"]


def test_the_same_figure_gives_the_same_bytes_at_any_hour(
    figure: Figure, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = time.time() + 100_000
    monkeypatch.setattr(time, "time", lambda: hour)
    assert {path.suffix: path.read_bytes() for path in save_figure(figure, tmp_path / "again")} == files


def test_no_date_is_written(files: dict[str, bytes]) -> None:
    assert not any(re.search(rb"CreationDate|dc:date|tIME|matplotlib", content) for content in files.values())


def test_a_pdf_embeds_small_truetype_fonts_that_copy_as_text(files: dict[str, bytes]) -> None:
    pdf = files[".pdf"]
    fonts = [stream for stream in streams(pdf) if stream[:4] == b"\x00\x01\x00\x00"]
    maps = b"".join(stream for stream in streams(pdf) if b"begincmap" in stream)
    assert len(pdf) < 60_000
    assert fonts
    assert not any(stream[:4] == b"OTTO" for stream in streams(pdf))
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    assert all(f"<{ord(character):04x}>".encode() in maps for character in "她红，")


def test_a_large_heat_map_is_a_small_pdf(tmp_path: Path) -> None:
    words = SENTENCE * 3
    (path,) = save_figure(
        maps.heat_map_figure(words, [[0.5] * len(words)] * len(words), "图"), tmp_path / "map", ["pdf"]
    )
    assert path.stat().st_size < 200_000


def test_an_svg_refers_to_nothing_outside_itself(files: dict[str, bytes]) -> None:
    svg = files[".svg"].decode()
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', svg))
    assert set(re.findall(r"https?://[^\"' >]*", svg)) == {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert not re.search(r"DOCTYPE|<text|font-family|@import|<script|url\((?!#)", svg)


def test_a_figure_that_fails_leaves_the_old_files(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row.png").write_bytes(b"old")
    draw = Figure.savefig

    def fail_on_pdf(self: Figure, *arguments: object, **settings: object) -> None:
        if settings["format"] == "pdf":
            raise OSError("disk full")
        draw(self, *arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", fail_on_pdf)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, tmp_path / "row")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"row.png": b"old"}


def test_a_write_that_fails_leaves_the_old_files(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row.png").write_bytes(b"old")
    write = Path.write_bytes

    def fail_on_svg(self: Path, data: bytes) -> int:
        if self.suffix == ".svg":
            raise OSError("disk full")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", fail_on_svg)
    with pytest.raises(UserError, match=r"row.svg: cannot be written \(disk full\)"):
        save_figure(figure, tmp_path / "row")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"row.png": b"old"}


def test_an_unknown_format_is_reported(figure: Figure, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'gif' is not known; choose among png, svg, pdf"):
        save_figure(figure, tmp_path / "row", ["png", "gif"])
    assert not list(tmp_path.iterdir())


def test_a_table_holds_every_key_and_leaves_none_empty(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [{"模板": "甲,乙", "n": 1}, {"模板": "丙", "n": None, "more": 0.5}])
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == '模板,n,more\n"甲,乙",1,\n丙,,0.5\n'


def test_json_keeps_its_order_and_refuses_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "m.json", {"b": "她", "a": None})
    assert (tmp_path / "m.json").read_text(encoding="utf-8") == '{\n  "b": "她",\n  "a": null\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "m.json", {"a": float("nan")})
    assert json.loads((tmp_path / "m.json").read_text(encoding="utf-8")) == {"b": "她", "a": None}
