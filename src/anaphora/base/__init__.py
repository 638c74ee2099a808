"""What every room may use: errors, files, checks, text and language rules; imports nothing of the other rooms."""
