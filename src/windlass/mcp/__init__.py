"""The MCP face: tools that other programs call."""
