"""What changes when something inside the model or its input is changed."""
