"""Live HTML page that shows models' attention maps and predictions for a typed sentence; served on localhost only."""
