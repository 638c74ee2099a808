"""Attention maps of a pronoun: raw weights, weighted norms, rollout, flow, value-zeroing and integrated gradients."""
