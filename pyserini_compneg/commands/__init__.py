"""The command lines: one module a command, over the public functions of the packages below."""
