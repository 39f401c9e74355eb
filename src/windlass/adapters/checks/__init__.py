"""The project's own commands, setup and checks, and the parsing of their output."""
