"""The runs of a study at work: in processes of this machine or on a cluster, with a page of their progress."""
