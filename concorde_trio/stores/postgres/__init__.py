"""A queue in a PostgreSQL database, for more than one machine. Needs the extra ``postgres`` (psycopg 3)."""
