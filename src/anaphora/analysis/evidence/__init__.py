"""Evidence on a run: the scores of the chosen head, the protocol, the controls, the verdict, and their data classes."""
