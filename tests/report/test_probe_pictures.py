from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageColor

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.data.example import from_record
from anaphora.data.tokens.words import word_numbers
from anaphora.report.figures import fonts
from anaphora.training.tensorboard import pictures as probe_pictures
from anaphora.training.tensorboard.pictures import PngImage, head_maps_image, pronoun_rows_image

ENGLISH = (("Ada", "met", "Eve", "before", "she", "left", "."), "en", "Ada met Eve before she left.")
CHINESE = (("小兰", "遇见", "阿梅", "以后", "，", "她", "走", "了", "。"), "zh", "小兰遇见阿梅以后，她走了。")


def sentence(
    words: tuple[str, ...], language: str, text: str, layers: int, heads: int, seed: int = 0
) -> tuple[AttentionRecord, NDArray[np.float32]]:
    spans = [(0, 0)]
    for word in words:
        begin = text.index(word, spans[-1][1])
        spans.append((begin, begin + len(word)))
    pronoun = next(span for span in spans if text[slice(*span)] in ("she", "她"))
    example = from_record(
        {"text": text, "language": language, "pronoun": pronoun, "candidates": [spans[1], spans[3]], "antecedents": [0]}
    )
    maps = np.random.default_rng(seed).dirichlet([0.3] * len(spans), size=(layers, heads, len(spans)))
    rows = maps[:, :, spans.index(pronoun)].astype(np.float32)
    return AttentionRecord(example, tuple(spans), word_numbers(text, spans), rows), maps.astype(np.float32)


def pixels(picture: PngImage) -> NDArray[np.uint8]:
    image = Image.open(BytesIO(picture.png))
    assert image.size == (picture.width, picture.height)
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("case", [ENGLISH, CHINESE], ids=["en", "zh"])
@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (3, 2), (6, 12)])
def test_both_pictures_hold_all_heads_and_stay_small(
    case: tuple[tuple[str, ...], str, str], layers: int, heads: int
) -> None:
    record, maps = sentence(*case, layers, heads)
    for picture in (pronoun_rows_image(record, 10), head_maps_image(record, maps, 10)):
        assert 200 < picture.width <= 1500
        assert 100 < picture.height <= 1500
        assert len(picture.png) < 250_000
        margin = pixels(picture)[:, -10:]
        assert (margin == 255).all()  # nothing is cut off at the right


@pytest.mark.parametrize("case", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_character_is_drawn_from_a_face_that_has_it(
    case: tuple[tuple[str, ...], str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.ft2font import FT2Font

    drawn: list[tuple[str, str]] = []
    pieces = probe_pictures._font_runs

    def noted(text: str, bold: bool) -> tuple[tuple[str, Path], ...]:
        found = pieces(text, bold)
        drawn.extend((character, str(file)) for piece, file in found for character in piece)
        return found

    monkeypatch.setattr(probe_pictures, "_font_runs", noted)
    record, maps = sentence(*case, 2, 2)
    pronoun_rows_image(record, 1000)
    head_maps_image(record, maps, 1000)
    assert set(case[2]) <= {character for character, _ in drawn}
    faces = {file: FT2Font(file) for _, file in drawn}
    assert [one for one in set(drawn) if not one[0].isspace() and not faces[one[1]].get_char_index(ord(one[0]))] == []


def test_a_character_that_noto_lacks_is_drawn_from_the_fallback() -> None:
    assert fonts.font_file_of("兰").name.startswith("Noto")
    lacking = next(chr(code) for code in range(0x2190, 0x2BFF) if "DejaVu" in fonts.font_file_of(chr(code)).name
                   and not fonts.missing_glyphs(chr(code)))  # fmt: skip
    assert [file.name for _, file in probe_pictures._font_runs(f"a{lacking}", bold=True)] == [
        fonts.font_file_of("a", bold=True).name,
        "DejaVuSans-Bold.ttf",
    ]


def test_a_sentence_stands_in_the_direction_of_its_script() -> None:
    text = "قال محمد إنه تعب"
    example = from_record(
        {"text": text, "language": "en", "pronoun": [9, 12], "candidates": [[4, 8]], "antecedents": [0]}
    )
    (line,) = probe_pictures._sentence_lines(example, 2000)
    assert [word for word, _ in line if word.strip()] == text.split()[::-1]
    (english,) = probe_pictures._sentence_lines(sentence(*ENGLISH, 1, 1)[0].example, 2000)
    assert "".join(word for word, _ in english) == ENGLISH[2]


def test_a_heavier_weight_is_darker_and_the_scale_is_the_same_in_every_picture() -> None:
    shades = probe_pictures._weight_colours(np.array([0.0, 0.01, 0.2, 0.5, 1.0])).sum(axis=-1).astype(int)
    assert (np.diff(shades) < 0).all()
    (first, _), (second, _) = (sentence(*ENGLISH, 1, 1, seed=seed) for seed in (1, 2))
    one, other = (pixels(pronoun_rows_image(record, 5))[-50:] for record in (first, second))
    assert np.array_equal(one, other)
    assert not np.array_equal(pixels(pronoun_rows_image(first, 5)), pixels(pronoun_rows_image(second, 5)))


def test_a_picture_of_the_same_weights_is_the_same_but_for_the_step() -> None:
    record, maps = sentence(*CHINESE, 2, 2)
    assert pronoun_rows_image(record, 5) == pronoun_rows_image(record, 5)
    one, other = pixels(head_maps_image(record, maps, 5)), pixels(head_maps_image(record, maps, 9))
    changed = np.argwhere((one != other).any(axis=-1))
    assert len(changed)
    assert changed[:, 0].max() < 40


def test_captions_are_in_the_sentences_language() -> None:
    assert fonts.is_chinese("".join(probe_pictures._phrases("zh").values()))
    assert not fonts.is_chinese("".join(probe_pictures._phrases("en").values()))


@pytest.mark.parametrize("draw", ["rows", "maps"])
def test_frames_of_other_candidates_are_dashed_and_those_of_the_antecedent_are_not(draw: str) -> None:
    record, maps = sentence(*ENGLISH, 1, 1)
    picture = pixels(pronoun_rows_image(record, 5) if draw == "rows" else head_maps_image(record, maps, 5))
    for role, is_dashed in (("antecedent", False), ("distractor", True)):
        colour = np.array(ImageColor.getrgb(probe_pictures._ROLE_COLOURS[role]))
        lines = (picture == colour).all(axis=-1)[130:]  # below the sentence and the words
        column = lines[:, np.flatnonzero(lines.sum(axis=0) > 8)[0]]
        inside = column[np.flatnonzero(column)[0] : np.flatnonzero(column)[-1] + 1]
        assert (not inside.all()) == is_dashed
