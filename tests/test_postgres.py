"""What only a server can do to a store: race on its gate, lose connections, refuse rights, go back in time.

Source: docs/SEMANTICS.md section 6; what every backend promises is in testing/conformance.py.
"""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import postgres_server
import pytest
from click.testing import CliRunner
from postgres_server import execute
from stores import chain

import memorepair as mr
from memorepair.cli import main

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL: psycopg is not installed")

from memorepair import postgres, postgres_rows  # noqa: E402

WAIT_SECONDS = 30
SECRET = "s3cr3t-w0rd"


@pytest.fixture
def url() -> str:
    return postgres_server.database()


@pytest.fixture
def store(url: str) -> Iterator[mr.Store]:
    with mr.open(url) as opened:
        yield opened
        assert opened.fsck() == []


@pytest.fixture
def other(url: str) -> Iterator[mr.Store]:
    """The same scope as another process sees it."""
    with mr.open(url) as opened:
        yield opened


def kill_connections(url: str) -> int:
    """End every session of the database but this one."""
    rows = execute(
        url,
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return len(rows)


@contextmanager
def held_gate(store: mr.Store) -> Iterator[None]:
    """Hold the gate of a store's scope while the block runs."""
    backend = store._scope.backend
    with backend.transaction(store._scope.id):
        yield


# -- the gate ----------------------------------------------------------------------------------------------------------


def test_processes_keep_epoch_order_and_readers_see_no_gap(url: str, store: mr.Store) -> None:
    script = (
        "import sys, memorepair as mr\n"
        "with mr.open(sys.argv[1], timeout_seconds=30) as store:\n"
        "    for i in range(40):\n"
        "        p = store.put(f'{sys.argv[2]}/p{i}', 'x')\n"
        "        store.derive(f'{sys.argv[2]}/d{i}', 'y', kind='cache', parents=[p])\n"
        "        if i % 4 == 0:\n"
        "            store.delete(f'{sys.argv[2]}/p{i}')\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", script, url, name]) for name in "ab"]
    backend, scope = store._scope.backend, store._scope.id
    while any(worker.poll() is None for worker in workers):
        with backend.snapshot(scope) as view:  # the epochs that a reader finds never skip one
            assert [change.epoch for change in view.changes(0)] == list(range(1, view.epoch + 1))
    assert [worker.wait(timeout=WAIT_SECONDS) for worker in workers] == [0, 0]
    assert len(store.find()) == 120
    assert store.status().versions == 160


def test_scopes_never_wait_for_each_other(url: str, store: mr.Store) -> None:
    backend = store._scope.backend
    with held_gate(store), ThreadPoolExecutor(2) as pool:
        with mr.open(url, scope="b", timeout_seconds=0.5) as elsewhere:
            assert pool.submit(elsewhere.put, "k", "x").result(WAIT_SECONDS).version == 1
        beside = mr.open(backend, scope="c")  # another scope of the same backend
        assert pool.submit(beside.put, "k", "x").result(WAIT_SECONDS).version == 1
        with mr.open(url, timeout_seconds=0.2) as late, pytest.raises(mr.StoreBusyError, match="try again"):
            pool.submit(late.put, "k", "x").result(WAIT_SECONDS)
        assert store.find() == []  # readers do not wait at all
    assert store.put("k", "x").version == 1


class Paused:
    """One writing call of a store in a thread, stopped behind the gate just before its commit."""

    def __init__(self, store: mr.Store, pool: ThreadPoolExecutor) -> None:
        self.scope, self.pool, self.commit = store._scope, pool, store._scope._commit
        self.has_gate, self.may_commit = threading.Event(), threading.Event()

    def begin(self, call: Callable[[], object]) -> None:
        """Start the call; returns when it has the gate, or after a while when another one holds it."""

        def commit(*arguments: object) -> None:
            self.has_gate.set()
            assert self.may_commit.wait(WAIT_SECONDS)
            self.commit(*arguments)

        self.scope._commit = commit
        self.done = self.pool.submit(call)
        self.done.add_done_callback(lambda _: self.has_gate.set())
        self.has_gate.wait(0.2)


ORDERS = [
    order
    for order in itertools.permutations(["read", "derive", "derived", "withdraw", "withdrawn"])
    if order.index("read") < order.index("derive") < order.index("derived")
    and order.index("withdraw") < order.index("withdrawn")
]


@pytest.mark.parametrize("stale", ["reject", "withdraw"])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_derivation_against_a_barrier(store: mr.Store, other: mr.Store, order: tuple[str, ...], stale: str) -> None:
    """In no order of steps on two connections is a derivation served whose parent a barrier has withdrawn."""
    store.put("p", "old")
    read: list[mr.Artifact] = []
    with ThreadPoolExecutor(2) as pool:
        derivation, barrier = Paused(store, pool), Paused(other, pool)
        for step in order:
            if step == "read":
                with suppress(mr.WithdrawnError):
                    read.append(store.get("p"))
            elif step == "derive" and read:
                derivation.begin(lambda: store.derive("d", "y", kind="cache", parents=read, stale=stale))
            elif step == "derived":
                derivation.may_commit.set()
            elif step == "withdraw":
                barrier.begin(lambda: other.delete("p"))
            elif step == "withdrawn":
                barrier.may_commit.set()
        assert barrier.done.result(WAIT_SECONDS).withdrawn >= 1
        if not read:
            return
        if order.index("derive") < order.index("withdraw"):
            assert derivation.done.result(WAIT_SECONDS).state == "visible"  # and the barrier took it down
        elif stale == "withdraw":
            assert derivation.done.result(WAIT_SECONDS).state == "withdrawn"
        else:
            with pytest.raises(mr.StaleDependencyError):
                derivation.done.result(WAIT_SECONDS)
    for key in "pd":
        with pytest.raises((mr.WithdrawnError, mr.UnknownKeyError)):
            other.get(key)


# -- connections that end ----------------------------------------------------------------------------------------------


def test_a_connection_lost_inside_a_transaction_changes_nothing(url: str, store: mr.Store) -> None:
    store.put("p", "x")
    with pytest.raises(mr.StoreUnreachableError, match="nothing was changed") as lost, store.batch() as batch:
        batch.put("q", "x")
        assert kill_connections(url)
        batch.put("r", "x")
    assert isinstance(lost.value, ConnectionError)
    assert [info.key for info in store.find()] == ["p"]
    with pytest.raises(mr.StoreUnreachableError), store._reading() as view:
        assert kill_connections(url)
        view.snapshot.num_versions()
    assert store.get("p").content == "x"


def test_connections_that_died_while_idle_are_replaced(url: str, store: mr.Store) -> None:
    store.put("p", "x")
    for call in (lambda: store.get("p"), lambda: store.put("q", "x"), lambda: store._scope.backend.scopes()):
        assert kill_connections(url)
        call()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_lost_during_commit_is_looked_up(
    url: str, store: mr.Store, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    made = chain(store)
    write = postgres_rows.PostgresTransaction._write

    def broken(transaction: postgres_rows.PostgresTransaction, batch: object, mark: bytes) -> None:
        monkeypatch.undo()
        if moment == "after":
            write(transaction, batch, mark)
        assert kill_connections(url)
        write(transaction, batch, mark)

    monkeypatch.setattr(postgres_rows.PostgresTransaction, "_write", broken)
    if moment == "before":
        with pytest.raises(mr.StoreUnreachableError, match="nothing was changed"):
            store.delete("p", event_id="e1")
        assert store.events() == []
        assert store.visible(made.values()).all()
    else:
        assert store.delete("p", event_id="e1").withdrawn == 4  # committed, and found to be
        assert not store.visible(made.values()).any()
    assert store.delete("p", event_id="e1").withdrawn == 4
    assert len(store.events()) == 1


def test_an_outcome_that_cannot_be_looked_up_is_unknown_until_asked_again(
    url: str, store: mr.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(store)
    write = postgres_rows.PostgresTransaction._write

    def refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("the server is away")

    def broken(transaction: postgres_rows.PostgresTransaction, batch: object, mark: bytes) -> None:
        write(transaction, batch, mark)
        kill_connections(url)
        monkeypatch.setattr(psycopg, "connect", refuse)
        write(transaction, batch, mark)

    monkeypatch.setattr(postgres_rows.PostgresTransaction, "_write", broken)
    with pytest.raises(mr.UnknownOutcomeError, match="same event id"):
        store.delete("p", event_id="e1")
    monkeypatch.undo()
    assert store.delete("p", event_id="e1").withdrawn == 4
    assert len(store.events()) == 1


def test_events_survive_a_server_that_keeps_hanging_up(url: str, store: mr.Store) -> None:
    """Sessions end at random moments; each event happens once, and its reply is the same for ever."""
    for i in range(30):
        store.put(f"p{i}", "x")
    is_over, kills = threading.Event(), []

    def kill() -> None:
        while not is_over.wait(0.003):
            kills.append(kill_connections(url))

    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(kill)
        try:
            for i in range(30):
                reply = None
                while reply is None:
                    with suppress(mr.StoreUnreachableError, mr.UnknownOutcomeError):
                        reply = store.delete(f"p{i}", event_id=f"e{i}")
                assert reply.withdrawn == 1
        finally:
            is_over.set()
        killing.result(WAIT_SECONDS)
    assert sum(kills)
    assert [event.event_id for event in store.events()] == [f"e{i}" for i in range(30)]


def test_a_client_that_keeps_the_gate_in_silence_loses_it(
    store: mr.Store, other: mr.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "IDLE_SECONDS", 0.2)
    with pytest.raises(mr.StoreUnreachableError), store.batch() as batch:
        batch.put("p", "x")
        time.sleep(0.5)
        assert other.put("q", "x").version == 1
    assert [info.key for info in store.find()] == ["q"]


def test_a_store_used_after_a_fork_refuses_and_harms_nothing(store: mr.Store) -> None:
    store.put("p", "x")
    child = os.fork()
    if not child:
        try:
            store.get("p")
        except mr.ClosedStoreError:
            store.close()
            os._exit(42)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert store.get("p").content == "x"
    assert store.put("q", "y").version == 2


def test_connections_are_shared_few_and_closed(url: str) -> None:
    count = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'memorepair'"
    )
    store = mr.open(url)
    store.put("p", "x")
    with ThreadPoolExecutor(12) as pool:
        assert len([*pool.map(lambda _: store.get("p"), range(200))]) == 200
    assert len(store._scope.backend._idle) <= postgres.MAX_IDLE
    store.close()
    for _ in range(100):  # a server takes a moment to notice
        if execute(url, count) == [(0,)]:
            break
        time.sleep(0.05)
    assert execute(url, count) == [(0,)]
    with pytest.raises(mr.ClosedStoreError):
        store.get("p")


class SlowLink:
    """A server at some distance: what passes, either way, takes `seconds`."""

    def __init__(self, url: str, seconds: float) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            is_local = info.host.startswith("/")
            self.target = f"{info.host}/.s.PGSQL.{info.port}" if is_local else (info.host, info.port)
            self.family = socket.AF_UNIX if is_local else socket.AF_INET
            secret = f"&password={quote(info.password)}" if info.password else ""
            folder = tempfile.mkdtemp(prefix="mrlink-")  # short, as the path of a socket must be
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            self.url = f"postgresql://{quote(info.user)}@/{info.dbname}?host={quote(folder)}{secret}"
        self.seconds = seconds
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, there = self.listener.accept()[0], socket.socket(self.family)
                there.connect(self.target)
                if self.family == socket.AF_INET:
                    there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink in ((here, there), (there, here)):
                    chunks: queue.Queue[tuple[float, bytes]] = queue.Queue()
                    threading.Thread(target=self._read, args=(source, chunks), daemon=True).start()
                    threading.Thread(target=self._write, args=(sink, chunks), daemon=True).start()

    def _read(self, source: socket.socket, chunks: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            data = source.recv(2**16)
            chunks.put((time.monotonic() + self.seconds, data))

    def _write(self, sink: socket.socket, chunks: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        with suppress(OSError):
            while data:
                at, data = chunks.get()
                time.sleep(max(0.0, at - time.monotonic()))
                sink.sendall(data) if data else sink.close()


def test_round_trips_on_a_slow_link(url: str, store: mr.Store) -> None:
    """One for `visible`, `get` and `get_many`, two for a derivation, however far away and whatever others commit."""
    seconds_away = 0.025
    link, numbers = SlowLink(url, seconds_away), itertools.count()
    made = [store.put(f"k{i}", "x") for i in range(50)]
    with mr.open(link.url, count_reads=False) as far:

        def derive() -> None:
            far.derive(f"d{next(numbers)}", "y", kind="cache", parents=made[:3], operator="f@1")

        def round_trips(call: Callable[[], object], is_quiet: bool = False) -> float:
            seconds = []
            for number in range(4):
                if not is_quiet:
                    store.put(f"k{number}", str(next(numbers)), supersede=True)
                    time.sleep(3 * seconds_away)  # the answer to the end of the last read is back
                start = time.monotonic()
                call()
                seconds.append(time.monotonic() - start)
            return min(seconds) / (2 * seconds_away)

        derive()
        far.get("k7")
        far.visible(made)
        assert 1 <= round_trips(lambda: far.visible(made), is_quiet=True) < 1.9
        assert 1 <= round_trips(lambda: far.get("k7")) < 1.9
        assert 1 <= round_trips(lambda: far.get_many([f"k{i}" for i in range(50)])) < 1.9
        assert 2 <= round_trips(derive) < 2.9
        names = [f"n{i}" for i in range(50)]

        def ingest() -> None:
            with far.batch(names) as batch:
                for name in names:
                    batch.put(name, str(next(numbers)), supersede=True)

        assert 2 <= round_trips(ingest) < 2.9


# -- servers and databases that cannot be used -------------------------------------------------------------------------


def test_newer_damaged_and_foreign_schemas_are_refused(url: str) -> None:
    mr.open(url).close()
    for value, expected in (("2", mr.NewerSchemaError), ("0", mr.DamagedStoreError), ("x", mr.DamagedStoreError)):
        execute(url, "UPDATE memorepair.meta SET value = %s WHERE name = 'schema'", value)
        with pytest.raises(expected, match="schema"):
            mr.open(url)
    execute(url, "UPDATE memorepair.meta SET value = '1' WHERE name = 'schema'")
    foreign = postgres_server.fresh_database()
    execute(foreign, "CREATE SCHEMA memorepair")
    execute(foreign, "CREATE TABLE memorepair.event(mine int)")
    with pytest.raises(mr.DamagedStoreError, match="not that of a store"):
        mr.open(foreign)
    assert execute(foreign, "SELECT count(*) FROM pg_tables WHERE schemaname = 'memorepair'") == [(1,)]


def test_open_without_create_makes_nothing() -> None:
    url = postgres_server.fresh_database()
    with pytest.raises(mr.MissingStoreError, match="no store in the database"):
        mr.open(url, create=False)
    assert execute(url, "SELECT to_regnamespace('memorepair')") == [(None,)]
    mr.open(url, scope="real").close()
    with pytest.raises(mr.MissingStoreError, match="'real'"):
        mr.open(url, scope="rael", create=False)
    mr.open(url, scope="real", create=False).close()


def test_two_handles_make_one_store_at_once() -> None:
    url = postgres_server.fresh_database()
    with ThreadPoolExecutor(4) as pool:
        stores = [*pool.map(lambda _: mr.open(url), range(4))]
    assert len({store.status().token for store in stores}) == 1
    for store in stores:
        store.close()


def test_a_role_without_rights(url: str) -> None:
    name, fresh = f"mr_{os.getpid()}_{time.time_ns()}", postgres_server.fresh_database()
    with mr.open(url) as store:
        store.put("p", "x")
    execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    try:
        with pytest.raises(mr.StoreReadOnlyError, match="grant"):
            mr.open(as_role(fresh, name))
        with pytest.raises(mr.StoreReadOnlyError):
            mr.open(as_role(url, name))
        execute(url, f"GRANT USAGE ON SCHEMA memorepair TO {name}")
        execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA memorepair TO {name}")
        with mr.open(as_role(url, name)) as reader:
            assert reader.get("p").content == "x"
            with pytest.raises(mr.StoreReadOnlyError, match="nothing was changed"):
                reader.put("q", "x")
    finally:
        execute(url, f"DROP OWNED BY {name}")
        execute(url, f"DROP ROLE {name}")


def as_role(url: str, name: str) -> str:
    """The same URL for another role."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{name}:{SECRET}@{rest.partition('@')[2] if '@' in rest.partition('?')[0] else rest}"


def test_a_server_that_has_gone_back_is_refused(url: str, store: mr.Store) -> None:
    store.put("p", "x")
    store.put("q", "x")
    store.get("p")
    execute(url, "UPDATE memorepair.scope SET epoch = 1")  # as after a fail-over that lost a commit
    kill_connections(url)
    with pytest.raises(mr.StoreError, match="behind what was read"):
        store.get("p")
    execute(url, "UPDATE memorepair.scope SET epoch = 2")
    assert store.get("q").content == "x"
    execute(url, "UPDATE memorepair.scope SET epoch = 1")  # and on a connection that lives
    with pytest.raises(mr.DamagedStoreError, match="older than what was read"):
        store.get("p")
    execute(url, "UPDATE memorepair.scope SET epoch = 2")


def test_nothing_stays_in_the_session_of_a_pooler(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = "SELECT count(*) FROM pg_prepared_statements"
    for is_pooler in (False, True):
        if is_pooler:  # which tells its own number for the session
            monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda info: 0))
        with mr.open(url) as store:
            store.put("p", "x")
            for _ in range(20):
                store.get("p")
            backend = store._scope.backend
            count = backend._ask("count", lambda connection: connection.execute(prepared).fetchone())
            settings = backend._ask("ask", lambda connection: connection.execute("SHOW lock_timeout").fetchone())
            assert (count == (0,)) == is_pooler
            assert settings == ("0",)


def test_defaults_of_the_database_do_not_matter_but_durability_does(url: str) -> None:
    fresh = postgres_server.fresh_database()
    name = execute(fresh, "SELECT current_database()")[0][0]
    for setting in ("default_transaction_isolation = serializable", "search_path = pg_temp", "bytea_output = escape"):
        execute(fresh, f"ALTER DATABASE {name} SET {setting}")
    with mr.open(fresh) as store:
        chain(store)
        assert store.delete("p").withdrawn == 4
        assert store.fsck() == []
    execute(fresh, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(mr.StoreError, match="synchronous_commit"):
        mr.open(fresh)


def test_a_state_row_that_hides_an_event_is_found(url: str) -> None:
    with mr.open(url) as store:
        chain(store)
        store.delete("p")
        execute(url, "UPDATE memorepair.scope SET event_epoch = 0")
        assert "database" in {finding.check for finding in store.fsck()}


# -- what goes in comes out --------------------------------------------------------------------------------------------


def test_bulk_goes_in_exactly(store: mr.Store) -> None:
    texts = ["\0tab\there", "line\nline\r", "\\N", "\\.", "{,}", "", "\u6f22\U0001f98a", "x" * 20_000]
    with store.batch() as batch:
        made = [batch.put(f"k\\{i}{{,}}\"'", texts[i % len(texts)] + str(i), title=texts[5]) for i in range(1000)]
        batch.derive("d", b"\0\xff", kind="cache", parents=made)
    for i, answer in enumerate(store.get_many([f"k\\{i}{{,}}\"'" for i in range(1000)])):
        assert answer.content == texts[i % len(texts)] + str(i)
    assert store.get("d").parents == tuple(made)


def test_lists_longer_than_a_page(store: mr.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_rows, "PAGE_ROWS", 7)
    with store.batch() as batch:
        made = [batch.put(f"k{i:02}", "x") for i in range(21)]
    assert [info.version for info in store.find(prefix="k")] == made
    with store._reading() as view:
        assert [row.version for row in view.snapshot.all_versions()] == made
        assert [version for version, _ in view.snapshot.parents(None)] == made


def test_a_snapshot_left_behind_refuses(store: mr.Store) -> None:
    store.put("p", "x")
    with store._reading() as view:
        rows = view.snapshot.heads()
    with pytest.raises(mr.ClosedStoreError, match="inside its block"):
        next(rows)


def test_reasons_may_hold_nul(store: mr.Store) -> None:
    store.put("p", "x")
    store.delete("p", reason="a\0b", event_id="e1")
    assert store.events()[0].reason == "a\0b"


# -- URLs, drivers, passwords ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        f"postgresql://u:{SECRET}@localhost:1/db",
        f"postgres://u:{SECRET}@127.0.0.1:1,127.0.0.1:2/db?target_session_attrs=read-write",
        f"postgresql://localhost:1/db?user=u&password={SECRET}",
        f"postgresql://u:p@{SECRET}@localhost:1/db",
        f"postgresql://u:p/{SECRET}@localhost:1/db",
        f"postgresql://u:p?{SECRET}@localhost:1/db",
        f"postgresql://u:1?{SECRET}@localhost:1/db",
        f"postgresql://u:1?{SECRET}=1@localhost:1/db",
        f"postgresql://u:p#{SECRET}@localhost:1/db",
        f"postgresql://u:{SECRET}@localhost:port/db",
        f"postgresql://u:{SECRET}%@localhost:1/db",
        f"postgresql://u:{SECRET}@localhost:1/db?no_such_option=1",
        f"postgresql://u:{SECRET} @localhost:1/db",
        f"postgresql://u:{SECRET}\n@localhost:1/db",
    ],
)
def test_a_password_is_never_shown(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises((mr.InvalidRequestError, mr.StoreUnreachableError)) as refused:
        mr.open(place)
    assert SECRET not in "".join(traceback.format_exception(refused.value))
    monkeypatch.chdir(tmp_path)
    for command in ("status", "init", "demo", "fsck"):
        result = CliRunner().invoke(main, [command, "--store", place])
        assert result.exit_code == 1
        assert SECRET not in result.output
    assert [*tmp_path.iterdir()] == []


def test_a_store_shows_its_place_without_the_role(url: str) -> None:
    with mr.open(url) as store:
        backend = store._scope.backend
        user = url.partition("://")[2].partition("@")[0]
        for text in (repr(store), repr(backend), backend.location, str(backend)):
            assert "@" not in text
            assert user not in text


def test_the_driver_is_imported_for_a_url_only_and_named_when_it_is_missing() -> None:
    script = (
        "import sys, memorepair as mr\n"
        "mr.open(':memory:').close()\n"
        "assert not any('psycopg' in name for name in sys.modules)\n"
        "sys.modules['psycopg'] = None\n"
        "try:\n"
        "    mr.open('postgresql://localhost/db')\n"
        "except mr.MissingExtraError as error:\n"
        "    assert \"pip install 'memorepair[postgres]'\" in str(error)\n"
        "    sys.exit(42)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=WAIT_SECONDS).returncode == 42


def test_the_command_line_takes_a_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMOREPAIR_STORE", url)

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, [*arguments])
        assert result.exit_code == code, result.output
        return result.output

    assert "does not exist" in run("status", code=1)
    assert "created" in run("init", "--scope", "s")
    run("put", "p", "x", "--scope", "s")
    run("derive", "d", "y", "--kind", "summary", "--parent", "p", "--scope", "s")
    assert "2 artifacts withdrawn" in run("delete", "p", "--scope", "s")
    assert "withdrawn" in run("explain", "d", "--scope", "s")
    assert run("fsck", "--scope", "s")
