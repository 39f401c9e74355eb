"""The command line: a file for each command, loaded when it is called."""
