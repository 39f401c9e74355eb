"""What to do next: a pure function of the state. No I/O, no clock, no randomness."""

from windlass.core.scheduler.decide import decide

__all__ = ["decide"]
