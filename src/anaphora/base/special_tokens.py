"""The tokens that every vocabulary begins with: data writes them, models read them."""

from __future__ import annotations

PADDING, UNKNOWN, CLS, MASK, NONE = range(5)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "[NONE]")
