"""Every setting, typed and checked; imports nothing heavy."""
