"""Does one head of a published encoder point at the antecedent, in two languages, and does it matter?"""
