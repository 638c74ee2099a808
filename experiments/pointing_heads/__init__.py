"""Does one head of a published encoder attend to the antecedent, in two languages, and does this affect the output?"""
