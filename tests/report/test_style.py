from __future__ import annotations

import runpy
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import ListedColormap, to_hex, to_rgb
from numpy.typing import NDArray
from PIL import Image

from anaphora.report.figures import style

DOCS = Path(__file__).parents[2] / "docs"
# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0.
VISIONS = {
    "usual": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def cielab(colour: tuple[float, ...], vision: str = "usual") -> NDArray[np.float64]:
    """Return CIE L*a*b* (D65) of an sRGB colour as seen with one kind of colour vision."""
    rgb = np.array(colour[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = (VISIONS[vision] @ linear).clip(0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISIONS)
def test_roles_stay_apart_for_every_colour_vision(vision: str) -> None:
    roles = [cielab(to_rgb(name), vision) for name in (style.PRONOUN, style.ANTECEDENT, style.DISTRACTOR, style.OTHER)]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(roles, 2)) > 20


def test_weights_darken_evenly_from_near_white() -> None:
    lightness = np.array([cielab(style.WEIGHTS(shade))[0] for shade in np.linspace(0, 1, 33)])
    steps = -np.diff(lightness)
    assert lightness[0] > 97
    assert lightness[-1] < 30
    assert steps.max() < 1.5 * steps.min()


def test_chance_is_white_and_both_sides_are_equally_deep() -> None:
    below, middle, above = (cielab(style.DIVERGING(place)) for place in (0.1, 0.5, 0.9))
    assert middle[0] > 97
    assert below[0] == pytest.approx(above[0], abs=4)


@pytest.mark.parametrize("colours", [style.WEIGHTS, style.DIVERGING])
def test_text_on_every_shade_has_the_contrast_that_wcag_asks_for(colours: ListedColormap) -> None:
    for colour in map(colours, range(colours.N)):
        ground, ink = to_rgb(to_hex(colour)), to_rgb(style.text_colour_on(colour))
        assert style.contrast(ground, ink) >= 4.5


@pytest.mark.parametrize("colour", [style.INK, style.MUTED, style.PRONOUN, style.ANTECEDENT, style.DISTRACTOR])
def test_a_colour_of_text_has_contrast_on_paper(colour: str) -> None:
    assert style.contrast(to_rgb(colour), to_rgb(style.PAPER)) >= 4.5


def test_the_house_style_ignores_the_users_settings_and_gives_them_back() -> None:
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30}):
        with style.figure_style():
            assert matplotlib.rcParams["axes.facecolor"] == "white"
            assert matplotlib.rcParams["font.size"] == style.TEXT
        assert matplotlib.rcParams["axes.facecolor"] == "black"
        assert matplotlib.rcParams["font.size"] == 30


def test_a_compressed_picture_of_the_documentation_keeps_its_white_paper(tmp_path: Path) -> None:
    nearly_white = np.stack(np.meshgrid(*[np.arange(244, 256, dtype=np.uint8)] * 3), axis=-1).reshape(12, -1, 3)
    pixels = np.full((60, 144, 3), 255, dtype=np.uint8)
    pixels[24:36] = nearly_white
    path = tmp_path / "picture.png"
    Image.fromarray(pixels).save(path)
    runpy.run_path(str(DOCS / "make_small.py"))["shrink"](path)
    with Image.open(path) as small:
        written = np.asarray(small.convert("RGB"))
    assert (written[:24] == 255).all() and (written[36:] == 255).all()
