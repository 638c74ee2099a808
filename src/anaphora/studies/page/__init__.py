"""The pages of studies, each in the language of the interface."""
