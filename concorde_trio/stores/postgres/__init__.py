"""A queue in a PostgreSQL database, for more than one machine. Needs the extra ``postgres`` (psycopg 3)."""

try:
    import psycopg as _psycopg  # noqa: F401
except ImportError as _error:
    raise ImportError(
        f"PostgresStore needs its library: pip install 'concorde-trio[postgres]' ({_error})", name="psycopg"
    ) from None
