"""The command lines: one module for each command. Commands call public functions of the packages below."""
