"""Step-by-step walk-through of attention in worked examples, a user's own matrices, or the encoder of a trained run."""

EXAMPLES = (
    "matrix_form",
    "one_query",
    "no_projections",
    "equal_projections",
    "by_hand",
    "two_sequences",
    "starving_kitten",
    "skipped_soup",
    "apple_to_eat",
    "apple_to_charge",
)
"""Names of the built-in calculations in the recommended reading order; each is a file in `examples`."""
