"""Pictures of the four sentences of a quad, with the attention of a run's head and the choices of heuristics."""
