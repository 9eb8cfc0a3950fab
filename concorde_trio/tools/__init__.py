"""Tools that a model may call: functions, programs, files, and those of MCP servers."""
