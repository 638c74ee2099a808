"""Accuracy of runs and their heads on forty sentences that users type first, in two languages."""
