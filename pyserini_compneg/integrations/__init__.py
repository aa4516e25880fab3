"""The engine in programs that people already have: a module for each host, which only it needs."""
