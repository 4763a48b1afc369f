"""Where a store lives: a path, ":memory:", or the URL of a PostgreSQL database.

Contract: `shown_location` names a location in messages, without user, password or parameters; nothing else may print
a URL.
Invariant: a URL that two readers could take apart in two ways is refused, so that no part of a password can end up
where a host or a database is expected, and from there in a message of the server or the driver.
"""

from __future__ import annotations

import re

from memorepair.errors import InvalidRequestError

_SCHEME = re.compile(r"postgres(ql)?://")
_URL = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^:@/?#\[\]\s]*(?::[^:@/?#\[\]\s]*)?@)?"  # user and password, percent-encoded
    r"(?P<place>[^@/?#\s]*(?:/[^@/?#\s]*)?)"  # host, port and database
    r"(?:\?[^?#\s]*)?"
)
_PORTS = re.compile(r"(?:[^:,]*|\[[^\]]*\])(?::[0-9]*)?")


def is_postgres(location: object) -> bool:
    """Whether `location` is meant as the URL of a PostgreSQL database."""
    return isinstance(location, str) and _SCHEME.match(location) is not None


def checked_url(url: str) -> str:
    """Return a PostgreSQL URL that can be read in one way only; the error never repeats it."""
    match = _URL.fullmatch(url)
    hosts = match["place"].partition("/")[0].split(",") if match else []
    if not match or not url.isprintable() or not all(_PORTS.fullmatch(host) for host in hosts):
        raise InvalidRequestError(
            "open: expected postgresql://user:password@host:port/database?options, got a URL of another form; "
            "percent-encode what is special in a user or password (@ is %40, / is %2F, : is %3A, ? is %3F, # is %23)"
        )
    return url


def shown_location(location: str) -> str:
    """Return `location` for people: a URL keeps its host, port and database, and nothing else."""
    if not is_postgres(location):
        return location
    match = _URL.fullmatch(location)
    return f"postgresql://{match['place'] if match else '...'}"
