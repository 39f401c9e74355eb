"""What tests and the demo use in place of the world; shipped, and held to the same contracts."""
