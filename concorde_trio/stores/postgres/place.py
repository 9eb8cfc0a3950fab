"""Where a PostgreSQL queue lives: a database, a schema in it, and how errors call it without its password.

The law: nothing here connects. What is no URL is refused at once, and no error repeats a password.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from concorde_trio.errors import StoreError, UsageError

SCHEMA = "concorde"
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SCHEMES = ("postgresql://", "postgres://")

BOUNDS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How soon a connection that leads nowhere is noticed (seconds; the last one milliseconds), unless the URL says otherwise."""


@attrs.frozen
class Place:
    """A schema in a database. ``conninfo`` is what libpq connects by, and has the password."""

    conninfo: str = attrs.field(repr=False)
    schema: str
    name: str

    @property
    def channel(self) -> str:
        """The channel on which commits are told of."""
        return f"concorde_{self.schema}"[:63]

    @property
    def fleet_channel(self) -> str:
        """The channel on which members of a fleet tell each other what they did."""
        return f"concorde_fleet_{self.schema}"[:63]

    @property
    def worker_key(self) -> int:
        """The advisory lock of the queue's one worker (REC-1)."""
        return self._key("worker")

    @property
    def migration_key(self) -> int:
        """The advisory lock under which the schema is changed."""
        return self._key("migration")

    def _key(self, what: str) -> int:
        digest = hashlib.sha256(f"concorde-trio {what} {self.schema}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)


def place_of(url: str, schema: str | None = None) -> Place:
    """The place that a ``postgresql://`` URL names; UsageError if it is none. ``?schema=`` in it names the schema too."""
    if not isinstance(url, str) or not url.startswith(_SCHEMES):
        raise UsageError(
            'a PostgresStore takes a URL like "postgresql://user@host/database", or "postgresql:///database"'
        )
    url, asked = _without_schema(url)
    if schema is not None and asked is not None and schema != asked:
        raise UsageError(f"the URL names the schema {asked!r:.80} and schema= names {schema!r:.80}; give one of them")
    schema = schema or asked or SCHEMA
    if not isinstance(schema, str) or not _SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(
            f"a schema's name is lower-case letters, digits and underscores, at most 63 and not pg_..., not {schema!r:.80}"
        )
    try:
        known = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
        conninfo = make_conninfo(url, **{name: bound for name, bound in BOUNDS.items() if name not in known})
    except psycopg.Error as error:
        # libpq quotes what it could not read, which may be the password.
        raise UsageError(f"the URL of the PostgreSQL database cannot be read ({type(error).__name__})") from None
    except ValueError:
        raise UsageError("the URL of the PostgreSQL database cannot be read") from None
    where = str(known.get("host") or known.get("hostaddr") or os.environ.get("PGHOST") or "")
    port = known.get("port")
    database = known.get("dbname") or os.environ.get("PGDATABASE") or known.get("user") or ""
    name = f"postgresql://{where}{f':{port}' if port else ''}/{database}"
    return Place(conninfo, schema, name if schema == SCHEMA else f"{name} (schema {schema})")


def state_folder() -> Path:
    """This user's folder on this machine for what stands beside a queue that is elsewhere: locks of programs, the endpoint."""
    base = os.environ.get("XDG_STATE_HOME", "")
    candidates = [Path(base)] if os.path.isabs(base) else []
    candidates += [Path(os.path.expanduser("~")) / ".local" / "state"]
    for candidate in candidates:
        folder = candidate / "concorde-trio"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    folder = Path(tempfile.gettempdir()) / f"concorde-trio-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise StoreError(f"{folder} belongs to somebody else; set XDG_STATE_HOME to a folder of this user's")
    return folder


def _without_schema(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    asked = [value for name, value in pairs if name == "schema"]
    if not asked:
        return url, None
    left = urlencode([(name, value) for name, value in pairs if name != "schema"])
    return urlunsplit(parts._replace(query=left)), asked[-1]
