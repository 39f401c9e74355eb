"""The only meter where the key is in the environment: a loopback proxy, and the price list."""
