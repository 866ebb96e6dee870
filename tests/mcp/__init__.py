"""The MCP server, as its clients see it."""
