"""The special tokens at the start of every vocabulary."""

from __future__ import annotations

PADDING, UNKNOWN, CLS, MASK, NONE = range(5)
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[MASK]", "[NONE]")
