"""The world behind the ports. Only `windlass.cli.wiring` picks from here."""
