"""One suite per port: whoever serves a port runs it, Windlass's own adapters first."""
