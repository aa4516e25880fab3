"""Shared by all other packages: errors, vectors, files, options, settings, progress and text for a terminal."""
