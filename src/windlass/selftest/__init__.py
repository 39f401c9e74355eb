"""Run plans and commands under faults, on any machine, and judge how they end."""
