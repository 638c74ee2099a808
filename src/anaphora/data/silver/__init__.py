"""Silver-standard items: pronouns in plain English text with antecedents found by rules, unchecked."""
