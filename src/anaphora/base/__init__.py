"""Parts shared by the whole package, such as errors, files, checks and languages; imports no other subpackage."""
