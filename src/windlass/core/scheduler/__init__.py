"""What to do next: a pure function of what is true. No I/O, no clock, no dice."""

from windlass.core.scheduler.decide import decide

__all__ = ["decide"]
