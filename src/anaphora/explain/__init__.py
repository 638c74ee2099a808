"""Walk-throughs: attention computed step by step, for built-in examples, a user's matrices, or a trained encoder."""

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
