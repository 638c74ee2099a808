"""Does a small encoder resolve the pronouns of everyday sentences, and does one of its heads attend to antecedents?"""
