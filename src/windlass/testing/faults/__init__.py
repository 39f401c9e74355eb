"""Faults of the machine, made on purpose: a kill at any call, a full disk, a power loss."""
