"""Live page with models' maps and answers for a sentence that the user types; served on localhost only."""
