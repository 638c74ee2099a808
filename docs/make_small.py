"""Compress pictures for docs/images in place: python docs/make_small.py PICTURE.png ...

A picture is reduced to a width of at most 1400 pixels and to 256 colours. The palette has the exact colours of scales,
roles and grey text, so that no step of a scale changes its hue and no pale cell turns white; the other colours are
chosen for each picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from anaphora.report.figures import style
from anaphora.report.figures.sheet import ROLE_COLOURS

_WIDTH = 1400
_STEPS = 64
"""Number of colours of each scale."""


def shrink(path: Path) -> None:
    """Compress a picture in place."""
    picture = Image.open(path).convert("RGBA")
    white = Image.new("RGBA", picture.size, style.PAPER)
    picture = Image.alpha_composite(white, picture).convert("RGB")
    if picture.width > _WIDTH:
        picture = picture.resize((_WIDTH, round(picture.height * _WIDTH / picture.width)), Image.Resampling.LANCZOS)
    fixed = _colours_of_figures()
    own = picture.quantize(256 - len(fixed), Image.Quantize.MAXCOVERAGE).convert("RGB")
    colours = [*fixed, *(colour for _, colour in own.getcolors(256) or [])]
    small = Image.fromarray(_nearest(np.asarray(picture), np.array(colours)))
    small.putpalette([part for colour in colours for part in colour])
    small.save(path, optimize=True)


def _nearest(pixels: NDArray[np.uint8], colours: NDArray[np.int_]) -> NDArray[np.uint8]:
    """Return the index of the nearest colour for every pixel, (height, width, 3) -> (height, width).

    Pillow's own search is approximate: it may take a pale grey for white.
    """
    different, places = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    distances = ((different[:, None].astype(int) - colours) ** 2).sum(axis=2)
    indices = distances.argmin(axis=1).astype(np.uint8)
    return indices[places].reshape(pixels.shape[:2])


def _colours_of_figures() -> list[tuple[int, int, int]]:
    """Return the colours of the scales, roles, text and background as RGB triples."""
    steps = np.linspace(0, 1, _STEPS)
    scales = [scale(step)[:3] for scale in (style.WEIGHTS, style.DIVERGING) for step in steps]
    named = [_share(colour) for colour in (*ROLE_COLOURS.values(), style.INK, style.MUTED, style.PAPER)]
    greys = [tuple(share * np.array(_share(style.INK)) + 1 - share) for share in np.linspace(0, 1, 12)]
    listed = [tuple(round(255 * float(part)) for part in colour) for colour in (*scales, *named, *greys)]
    return list(dict.fromkeys((red, green, blue) for red, green, blue in listed))


def _share(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shrink(Path(name))
