"""Which of forty sentences that people type first does a run answer, and does its head point? In two languages."""
