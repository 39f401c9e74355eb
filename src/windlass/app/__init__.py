"""Use cases: typed functions that every face of Windlass calls. `windlass` itself exports them."""
