"""One test suite per port, for every implementation of it, Windlass's own adapters included."""
