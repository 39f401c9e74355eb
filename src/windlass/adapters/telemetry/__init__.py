"""Telemetry for other programs. Its libraries are an extra: import a module only where it is on."""
