"""The core: plans, facts, state, decisions. Pure: no I/O, no clock, no randomness, no ids."""
