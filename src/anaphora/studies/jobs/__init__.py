"""The runs of a study at work: in this process, in others of this machine, or on a cluster."""
