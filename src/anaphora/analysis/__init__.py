"""Analysis of attention: from rows to scores to a selected head and its evidence; independent of Lightning."""
