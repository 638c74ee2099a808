"""Settings of the position encodings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omegaconf import MISSING

from anaphora.base.checks import at_least, between
from anaphora.base.errors import UserError

if TYPE_CHECKING:
    from anaphora.model import position as modules


@dataclass(kw_only=True)
class Position:
    """Settings of the position encoding; each subclass is a variant."""

    kind: str = MISSING

    def build(self, width: int, heads: int) -> modules.Position:
        """Build the position encoding for an encoder of this width and number of heads."""
        raise UserError(f"model.position.kind ({self.kind!r}) is not one that this encoder can build")

    def check_shape(self, width: int, heads: int) -> None:
        """Check that the encoding fits an encoder of this shape; raise ValueError that names the setting if not."""

    @property
    def longest_text(self) -> int | None:
        """Return the maximum number of tokens in an input text, or None if there is no limit."""
        return None


@dataclass(kw_only=True)
class NoPosition(Position):
    """No position encoding: the encoder sees a bag of tokens."""

    kind: str = "none"

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.Position()


@dataclass(kw_only=True)
class Sinusoidal(Position):
    """Fixed sinusoids added to the embedding (Vaswani et al. 2017, section 3.5)."""

    kind: str = "sinusoidal"
    base: float = 10_000.0  # the wavelengths grow up to 2 pi times this number

    def __post_init__(self) -> None:
        at_least("model.position.base", self.base, 2)

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.Sinusoidal(width, self.base)

    def check_shape(self, width: int, heads: int) -> None:
        if width % 2:
            raise ValueError(f"model.position=sinusoidal pairs sines with cosines: model.width ({width}) must be even")


@dataclass(kw_only=True)
class Learned(Position):
    """One trained vector for each position, added to the embedding (Devlin et al. 2019)."""

    kind: str = "learned"
    max_length: int = 512  # number of positions with a vector; longer texts raise an error

    def __post_init__(self) -> None:
        between("model.position.max_length", self.max_length, 1, 10**6)

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.Learned(width, self.max_length)

    @property
    def longest_text(self) -> int | None:
        return self.max_length


@dataclass(kw_only=True)
class Rotary(Position):
    """Rotation of queries and keys by an angle proportional to the position (Su et al. 2021)."""

    kind: str = "rotary"
    base: float = 10_000.0  # the wavelengths grow up to 2 pi times this number

    def __post_init__(self) -> None:
        at_least("model.position.base", self.base, 2)

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.Rotary(width // heads, self.base)

    def check_shape(self, width: int, heads: int) -> None:
        if (width // heads) % 2:
            raise ValueError(
                f"model.position=rotary turns pairs of features: model.width / heads ({width // heads}) must be even"
            )


@dataclass(kw_only=True)
class Alibi(Position):
    """A score penalty proportional to the distance (Press et al. 2022), the same in both directions."""

    kind: str = "alibi"

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.Alibi(heads)


@dataclass(kw_only=True)
class T5Relative(Position):
    """A trained score bias for each distance bucket (Raffel et al. 2020, section 2.1)."""

    kind: str = "t5_relative"
    buckets: int = 32  # number of distance buckets, half of them for each direction
    max_distance: int = 128  # distances from this one on share the last bucket

    def __post_init__(self) -> None:
        if self.buckets < 4 or self.buckets % 4:
            raise ValueError(f"model.position.buckets ({self.buckets}) must be a positive multiple of 4")
        between("model.position.buckets", self.buckets, 4, 10**6)
        at_least("model.position.max_distance", self.max_distance, self.buckets // 4 + 1)

    def build(self, width: int, heads: int) -> modules.Position:
        from anaphora.model import position as modules

        return modules.T5Relative(heads, self.buckets, self.max_distance)
