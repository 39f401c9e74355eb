"""The world behind the ports. Only `windlass.app.wiring` picks from here."""
