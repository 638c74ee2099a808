"""The measures of heads, one per file with its result and its computation."""
