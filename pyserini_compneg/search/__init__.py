"""Search on impact indexes, and the runs it writes."""
