"""Measures of attention heads beyond their accuracy; each module has a measure's data class and its computation."""
