"""Fakes, scripted models, contracts and fault injection, for tests and the demo.

They ship with Windlass; the fakes pass the same contracts as the real adapters.
"""
