"""The step-by-step walk-through of attention: hand calculations, one's own matrices, and any sentence of a run."""
