"""Models of `transformers`, read and edited where they compute their attention. Needs the extra [transformers]."""
