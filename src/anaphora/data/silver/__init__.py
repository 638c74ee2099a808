"""Silver-standard items: pronouns in plain English text, with antecedents that rules found and nobody checked."""
