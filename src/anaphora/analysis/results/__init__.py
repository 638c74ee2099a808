"""Results that several parts of the analysis share, as dataclasses; JSON and back."""
