"""The project's own commands: setup and checks, and what their output says."""
