"""The MCP door: one MCP server before many; it finds tools, checks calls, and forwards those that the gate allows."""
