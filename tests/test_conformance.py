"""Every backend passes the conformance suite of memorepair.testing.

Source: protocol.py; docs/SEMANTICS.md section 6.
"""

from pathlib import Path

import postgres_server
import pytest

from memorepair import MemoryBackend, SqliteBackend
from memorepair.protocol import Backend
from memorepair.testing import BackendConformance


class TestMemory(BackendConformance):
    def backend(self) -> Backend:
        return MemoryBackend()


class TestSqliteInMemory(BackendConformance):
    has_free_readers = False  # SQLite has no write-ahead log in memory

    @pytest.fixture(autouse=True)
    def _close(self):
        self.opened = []
        yield
        for backend in self.opened:
            backend.close()

    def backend(self) -> Backend:
        self.opened.append(SqliteBackend(":memory:", timeout_seconds=0.5))
        return self.opened[-1]


class TestSqliteFile(TestSqliteInMemory):
    has_free_readers = True

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path):
        self.folder = tmp_path

    def backend(self) -> Backend:
        self.opened.append(SqliteBackend(self.folder / f"{len(self.opened)}.db", timeout_seconds=0.5))
        return self.opened[-1]

    def reopen(self, backend: Backend) -> Backend | None:
        backend.close()
        self.opened.append(SqliteBackend(backend.path))
        return self.opened[-1]


class TestPostgres(TestSqliteInMemory):
    has_free_readers = True

    def backend(self) -> Backend:
        return self._open(postgres_server.database(), timeout_seconds=0.5)

    def _open(self, url: str, **options: float) -> Backend:
        from memorepair.postgres import PostgresBackend

        self.opened.append(PostgresBackend(url, **options))
        self.opened[-1].test_url = url
        return self.opened[-1]

    def reopen(self, backend: Backend) -> Backend | None:
        backend.close()
        return self._open(backend.test_url)
