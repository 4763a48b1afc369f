"""The command line: `memorepair`.

Contract: a command is parse -> library call -> print. Results go to stdout, progress and errors to stderr; with
`--json` stdout holds one JSON value. Exit code 0 = done, 1 = refused or findings, 2 = wrong usage; the last line says
the same. Text from a store is escaped before it reaches a terminal and never read as markup.
Modules by noun: artifacts.py (init, put, derive, show, ls), events.py (impact, delete, correct, ...), repairs.py (plan,
frontier, repair), checks.py (status, explain, fsck), loading.py (adopt, demo); command.py is what they share.
"""

from memorepair.cli import artifacts, checks, events, loading, repairs
from memorepair.cli.command import main

__all__ = ["artifacts", "checks", "events", "loading", "main", "repairs"]
