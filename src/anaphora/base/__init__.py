"""Modules that all subpackages share, such as errors, files, checks and languages; they import no other subpackage."""
