"""Causal tests: effects of interventions on the model or its input."""
