"""Style of all figures: fonts with sizes in points, widths in inches, and colours.

Each role of a word has the same colour in all figures. The colours can be distinguished with protanopia, deuteranopia
and tritanopia. Both colour maps change lightness in equal steps in OKLab (Ottosson 2020), from near white to dark; the
diverging one does so on both sides of chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap, to_rgb
from numpy.typing import NDArray

from anaphora.report.figures.fonts import font_families, report_undrawn

DOUBLE_COLUMN = 7.0
"""Width in inches of a two-column figure in a paper."""
PHONE = 3.0
"""Width in inches of a figure that fits the screen of a phone."""

INK = "#1d2330"
MUTED = "#667080"
HAIRLINE = "#d3d7de"
PAPER = "#ffffff"
BLACK = "#000000"
PRONOUN = "#7d3c98"
ANTECEDENT = "#00786c"
DISTRACTOR = "#b54f08"
OTHER = "#98a0ad"

TEXT = 8.0
SMALL = 7.0
TINY = 6.5
"""Font sizes in points; TINY is the smallest in use."""


def _ramp(hue: float, chroma: float, steps: int) -> NDArray[np.float64]:
    """Return colours of one OKLab hue (in degrees), from near white to dark, as sRGB in [0, 1], (steps, 3).

    `chroma` is the largest OKLab chroma.
    """
    way = np.linspace(0.0, 1.0, steps)
    lightness = 0.985 - 0.63 * way
    colour = chroma * np.sin(np.pi * (0.02 + 0.78 * way))
    return _from_oklab(lightness, colour * np.cos(np.radians(hue)), colour * np.sin(np.radians(hue)))


def _from_oklab(
    lightness: NDArray[np.float64], green_red: NDArray[np.float64], blue_yellow: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Convert OKLab to sRGB in [0, 1] (Ottosson 2020, "A perceptual color space for image processing")."""
    long = (lightness + 0.3963377774 * green_red + 0.2158037573 * blue_yellow) ** 3
    medium = (lightness - 0.1055613458 * green_red - 0.0638541728 * blue_yellow) ** 3
    short = (lightness - 0.0894841775 * green_red - 1.2914855480 * blue_yellow) ** 3
    linear = np.stack(
        [
            4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
        ],
        axis=-1,
    ).clip(0.0, 1.0)
    gamma: NDArray[np.float64] = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return gamma


WEIGHTS = ListedColormap(_ramp(hue=255, chroma=0.135, steps=128), name="anaphora_weights")
"""Colour map of attention weights, from near white at 0 to dark blue."""
DIVERGING = ListedColormap(
    np.concatenate([_ramp(hue=55, chroma=0.115, steps=64)[::-1], _ramp(hue=255, chroma=0.135, steps=64)]),
    name="anaphora_against_chance",
)
"""Colour map of scores: brown below chance, near white at chance, blue above."""

_MATPLOTLIB_SETTINGS: dict[str, Any] = {
    "font.size": TEXT,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a sentence starts no formula
    "text.hinting": "none",
    "axes.labelsize": TEXT,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": HAIRLINE,
    "grid.linewidth": 0.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.solid_capstyle": "butt",
    "figure.dpi": 144,
    "figure.facecolor": PAPER,
    "savefig.dpi": 300,
    "savefig.facecolor": PAPER,
    "savefig.bbox": "standard",
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "anaphora",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply matplotlib's defaults with the style of this package, independent of the user's matplotlibrc.

    On exit, characters without a glyph are reported.
    """
    from matplotlib.style import context

    with context(["default", {**_MATPLOTLIB_SETTINGS, "font.family": list(font_families())}]):
        yield
    report_undrawn()


def text_colour_on(colour: tuple[float, ...]) -> str:
    """Return the colour of text on a background: the first of PAPER, INK and BLACK with a contrast of 4.5 (WCAG 2)."""
    return next((text for text in (PAPER, INK) if contrast(to_rgb(text), colour) >= 4.5), BLACK)


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the contrast of two sRGB colours, from 1 to 21 (WCAG 2)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: tuple[float, ...]) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
