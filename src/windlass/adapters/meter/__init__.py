"""Meters agents that use an API key: a loopback proxy that counts and limits their cost."""
