"""Where a queue lives: in memory, or in a SQLite file."""
