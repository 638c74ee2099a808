"""Live page that shows maps and answers of models for a typed sentence, served on localhost only."""
