"""The engine in other programs: a module for each host. Only the module needs the host."""
