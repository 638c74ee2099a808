"""The step-by-step walk-through of attention: hand calculations, user matrices, and sentences of a run."""

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
"""The built-in calculations, in the order in which they are best read; each is a file of `examples`."""
