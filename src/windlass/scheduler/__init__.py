"""What to do next: a pure function of what is true. No I/O, no clock, no dice."""

from windlass.scheduler.decide import decide

__all__ = ["decide"]
