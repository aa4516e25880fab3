"""Methods: the ways to answer topics that experiments compare."""
