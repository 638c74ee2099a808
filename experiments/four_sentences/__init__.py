"""The four sentences of a quad in one picture, with what a run's head attends to and what heuristics pick."""
