"""Silver-standard items: pronouns of plain English text whose antecedents rules know and nobody has checked."""
