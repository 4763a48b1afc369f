"""put, derive, get and their rules, on every backend."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from stores import chain

import memorepair as mr


def test_put_then_get_gives_the_artifact(store: mr.Store) -> None:
    put = store.put("doc", {"a": [1, "x"]}, title="A doc", labels={"team": "cs"}, namespace="docs")
    got = store.get("doc")
    assert (got.version, got.content, got.title, got.labels, got.namespace) == (
        put.version,
        {"a": [1, "x"]},
        "A doc",
        {"team": "cs"},
        "docs",
    )
    assert got.state == "visible"
    assert got.token == put.token


@pytest.mark.parametrize("content", ["text", "", b"\x00\xff", {"k": [1, 2.5, None, True]}, [], 7, 1.5, False])
def test_content_comes_back_equal(store: mr.Store, content: object) -> None:
    store.put("doc", content)
    got = store.get("doc").content
    assert got == content
    assert type(got) is type(content)


@pytest.mark.parametrize(
    "content", [None, float("nan"), float("inf"), {1: "a"}, {"a": (1, 2)}, object(), "\ud83d", {"a": "\ud83d"}, {1, 2}]
)
def test_content_that_would_not_come_back_is_refused(store: mr.Store, content: object) -> None:
    with pytest.raises(mr.InvalidContentError):
        store.put("doc", content)
    assert store.find() == []


def test_deeply_nested_json_is_refused_not_a_crash(store: mr.Store) -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(mr.InvalidContentError):
        store.put("doc", nested)
    while nested:  # taken apart by hand: freeing it at once would recurse
        nested = nested[0]  # type: ignore[assignment]


def test_external_content_is_kept_by_digest(store: mr.Store) -> None:
    store.put("doc", mr.External("abc", "s3://bucket/doc"))
    assert store.get("doc").content == mr.External("abc", "s3://bucket/doc")


def test_equal_put_is_one_version(store: mr.Store) -> None:
    first = store.put("doc", "text", labels={"a": "b"})
    assert store.put("doc", "text", labels={"a": "b"}).version == first.version
    assert len(store.history("doc")) == 1


def test_put_with_other_labels_supersedes_and_withdraws_nothing(store: mr.Store) -> None:
    made = chain(store)
    again = store.put("p", "source", labels={"team": "ops"})
    assert again.version != made["p"].version
    assert store.visible([again, made["p"], made["a"]]).tolist() == [True, False, True]
    assert store.events() == []


def test_a_new_label_on_a_derived_artifact_keeps_its_provenance(store: mr.Store) -> None:
    made = chain(store)
    again = store.put("a", "from p", kind="cache", labels={"team": "ops"})
    assert (again.parents, again.operator, again.cost) == ((made["p"].version,), "echo", made["a"].cost)
    store.delete("p")
    with pytest.raises(mr.WithdrawnError):
        store.get("a")


def test_changed_put_is_a_correction(store: mr.Store) -> None:
    made = chain(store)
    store.put("p", "other")
    assert store.visible(made.values()).tolist() == [False] * 4
    assert [event.kind for event in store.events()] == ["correct"]
    assert store.get("p").content == "other"


def test_changed_put_that_supersedes_keeps_dependants(store: mr.Store) -> None:
    made = chain(store)
    store.put("p", "the new truth", supersede=True)
    assert store.visible([made["a"], made["b"], made["c"]]).all()
    late = store.derive("late", "x", kind="cache", parents=[made["p"]])  # history is a legal parent
    assert late.state == "visible"


def test_change_of_kind_is_a_correction(store: mr.Store) -> None:
    made = chain(store)
    store.put("p", "source", kind="cache")
    assert not store.visible([made["a"]])[0]


def test_base_refuses_a_write_that_did_not_see_the_head(store: mr.Store) -> None:
    first = store.put("doc", "one")
    store.put("doc", "two", base=first)
    with pytest.raises(mr.StaleBaseError, match="not its visible head"):
        store.put("doc", "three", base=first)
    assert store.get("doc").content == "two"


def test_delete_wins_over_a_write_that_did_not_see_it(store: mr.Store) -> None:
    first = store.put("doc", "one")
    store.delete("doc")
    with pytest.raises(mr.StaleBaseError):
        store.put("doc", "two", base=first)
    with pytest.raises(mr.WithdrawnError):
        store.get("doc")


def test_put_after_delete_is_a_new_version_and_old_descendants_stay_withdrawn(store: mr.Store) -> None:
    made = chain(store)
    store.delete("p")
    assert store.put("p", "source").version != made["p"].version
    with pytest.raises(mr.WithdrawnError):
        store.get("a")


def test_derive_is_idempotent_and_supersedes(store: mr.Store) -> None:
    p = store.put("p", "source")
    one = store.derive("a", "x", kind="cache", parents=[p], operator="f@1")
    assert store.derive("a", "x", kind="cache", parents=[p], operator="f@1").version == one.version
    two = store.derive("a", "x", kind="cache", parents=[p], operator="f@2")
    assert store.visible([one, two]).tolist() == [False, True]
    assert [info.state for info in store.history("a")] == ["visible", "superseded"]


def test_derive_with_a_withdrawn_parent_is_rejected_or_born_withdrawn(store: mr.Store) -> None:
    made = chain(store)
    store.correct("p", "other")
    with pytest.raises(mr.StaleDependencyError, match="is withdrawn"):
        store.derive("late", "x", kind="cache", parents=[made["a"]])
    late = store.derive("late", "x", kind="cache", parents=[made["a"]], stale="withdraw")
    assert late.state == "withdrawn"
    with pytest.raises(mr.WithdrawnError) as refused:
        store.get("late")
    assert refused.value.gap.events == (store.events()[0].event_id,)


def test_late_derivation_over_a_visible_key_leaves_the_head(store: mr.Store) -> None:
    made = chain(store)
    fresh = store.put("fresh", "y")
    kept = store.derive("key", "good", kind="cache", parents=[fresh])
    store.correct("p", "other")
    late = store.derive("key", "stale", kind="cache", parents=[made["a"]], stale="withdraw")
    assert store.get("key").version == kept.version
    assert [info.version for info in store.history("key")] == [late.version, kept.version]


def test_parents_are_versions_not_keys(store: mr.Store) -> None:
    store.put("p", "source")
    with pytest.raises(mr.InvalidRequestError, match=r"store\.get\(key\)"):
        store.derive("a", "x", kind="cache", parents=["p"])  # type: ignore[list-item]
    with pytest.raises(mr.InvalidRequestError):
        store.derive("a", "x", kind="cache", parents="p")  # type: ignore[arg-type]
    with pytest.raises(mr.StaleDependencyError, match="does not exist"):
        store.derive("a", "x", kind="cache", parents=[99])
    with pytest.raises(mr.StaleDependencyError, match="does not exist"):
        store.derive("a", "x", kind="cache", parents=[2**40])
    assert store.find(prefix="a") == []


def test_interface_parents_are_always_required(store: mr.Store) -> None:
    tool = store.put("tool", {"args": []}, form="interface")
    doc = store.put("doc", "x")
    made = store.derive("a", "x", kind="summary", optional=[tool, doc])
    assert (made.required, made.optional) == ((tool.version,), (doc.version,))


def test_operator_without_a_version_makes_it_partial(store: mr.Store) -> None:
    p = store.put("p", "source")
    assert store.derive("a", "x", kind="cache", parents=[p], operator="f").completeness == "partial"
    assert store.derive("b", "x", kind="cache", parents=[p], operator="f@1").completeness == "complete"


@pytest.mark.parametrize(
    ("kind", "form"), [("record", "neural"), ("summary", "chain"), ("skill", "interface"), ("note", None)]
)
def test_kind_and_form_must_go_together(store: mr.Store, kind: str, form: str | None) -> None:
    with pytest.raises(mr.InvalidRequestError):
        store.derive("a", "x", kind=kind, form=form)


@pytest.mark.parametrize(
    "cost", [-1, float("nan"), "5", "-5 tokens", "x tokens", "nan tokens", True, "1e999 tokens", ""]
)
def test_costs_without_sense_are_refused(store: mr.Store, cost: object) -> None:
    with pytest.raises(mr.InvalidAmountError):
        store.derive("a", "x", kind="cache", cost=cost)  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), -0.0, "5", None, True, 2**80])
def test_weights_without_sense_are_refused(store: mr.Store, weight: object) -> None:
    with pytest.raises(mr.InvalidAmountError):
        store.put("a", "x", weight=weight)


def test_numpy_scalars_are_numbers_and_versions(store: mr.Store) -> None:
    p = store.put("p", "x", weight=np.float64(0.5))
    assert p.weight == 500_000
    a = store.derive("a", "x", kind="cache", parents=[np.uint32(p.version)])
    assert store.visible(np.array([a.version, 0, 2**31], dtype=np.int64)).tolist() == [True, False, False]


def test_unknown_withdrawn_and_expired_are_different_answers(store: mr.Store) -> None:
    with pytest.raises(mr.UnknownKeyError) as unknown:
        store.get("nothing")
    assert unknown.value.gap.state == "unknown"
    assert isinstance(unknown.value, KeyError)
    store.put("old", "x", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(mr.ExpiredError):
        store.get("old")
    gone = store.put("gone", "x")
    store.delete("gone")
    with pytest.raises(mr.WithdrawnError, match="delete"):
        store.get("gone")
    assert store.visible([gone]).tolist() == [False]
    states = [answer.state for answer in store.get_many(["nothing", "old", "gone"])]
    assert states == ["unknown", "expired", "withdrawn"]


def test_expiry_follows_the_stores_clock(place: str) -> None:
    now = [0]
    with mr.open(place, clock=lambda: now[0]) as store:
        art = store.put("x", "y", expires_at=datetime(1970, 1, 1, 0, 0, 10, tzinfo=UTC))
        assert store.visible([art])[0]
        now[0] = 10_000_000
        assert not store.visible([art])[0]
        with pytest.raises(mr.StaleDependencyError, match="expired"):
            store.derive("z", "from x", kind="cache", parents=[art])


def test_gap_names_event_reason_and_retained_parents(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "y")
    store.derive("s", "both", kind="summary", optional=[p, q])
    store.delete("p", event_id="del-1", reason="asked by its author")
    gap = store.get_many(["s"])[0]
    assert isinstance(gap, mr.Gap)
    assert (gap.state, gap.events, gap.retained) == ("withdrawn", ("del-1",), ("q",))
    assert "asked by its author" in gap.reason


def test_filter_keeps_visible_hits_in_order(store: mr.Store) -> None:
    made = chain(store)
    keep = store.put("keep", "x")
    hits = [{"id": keep.version}, {"id": made["c"].version}, {"id": 999}, {"id": keep.version}]
    store.delete("p")
    assert store.filter(hits, version=lambda hit: hit["id"]) == [hits[0], hits[3]]
    assert store.filter([keep.version, made["a"].version]) == [keep.version]
    assert store.filter([]) == []


def test_find_by_kind_labels_prefix_and_namespace(store: mr.Store) -> None:
    store.put("doc/1", "x", labels={"team": "a"}, namespace="n")
    p = store.put("doc/2", "x", labels={"team": "b"})
    store.derive("doc/3", "x", kind="summary", parents=[p], labels={"team": "b"})
    store.put("dod", "x")
    assert [info.key for info in store.find(prefix="doc/")] == ["doc/1", "doc/2", "doc/3"]
    assert [info.key for info in store.find(labels={"team": "b"})] == ["doc/2", "doc/3"]
    assert [info.key for info in store.find(kind="summary")] == ["doc/3"]
    assert [info.key for info in store.find(namespace="n")] == ["doc/1"]
    assert [info.key for info in store.find(limit=2)] == ["doc/1", "doc/2"]
    store.delete("doc/2")
    assert [info.key for info in store.find(prefix="doc/")] == ["doc/1"]


def test_find_prefix_takes_sql_characters_literally(store: mr.Store) -> None:
    keys = ["100%", "100_", "100*", "a'; DROP TABLE version; --", "a\\b", "[x]", "?"]
    for key in keys:
        store.put(key, "x")
    for key in keys:
        assert [info.key for info in store.find(prefix=key)] == [key]


@pytest.mark.parametrize(
    "key",
    ["", " a", "a ", "a\x00b", "a\nb", "\ud800", "A\u030a", "a\u202eb", "\u200f", "x" * 513, "é" * 257, 7, None, b"k"],
)
def test_hostile_keys_are_refused_by_name(store: mr.Store, key: object) -> None:
    with pytest.raises(mr.InvalidKeyError):
        store.put(key, "x")  # type: ignore[arg-type]
    assert store.find() == []


def test_a_refused_key_names_the_code_point_or_the_nfc_form(store: mr.Store) -> None:
    with pytest.raises(mr.InvalidKeyError, match=r"U\+0000 at position 3"):
        store.put("aaa\x00b", "x")
    with pytest.raises(mr.InvalidKeyError, match="\u00c5"):
        store.put("A\u030a", "x")


def test_scopes_do_not_see_each_other(place: str) -> None:
    with mr.open(place, scope="a") as a, mr.open(place, scope="b") as b:
        for store in (a, b):
            chain(store)
        a.delete("p")
        assert len(b.find()) == 4
        with pytest.raises(mr.UnknownKeyError):
            b.delete("only-in-a")
        b.put("mine", "x")
        with pytest.raises(mr.UnknownKeyError):
            a.get("mine")


def test_add_parent_withdraws_the_cascade_when_the_parent_is_withdrawn(store: mr.Store) -> None:
    other = store.put("other", "x")
    made = chain(store)
    store.add_parent(made["a"], other)
    assert set(store.history("a")[0].parents) == {made["p"].version, other.version}
    store.delete("other")
    assert not store.visible([made["a"], made["b"], made["c"]]).any()
    q = store.put("q", "x")
    r = store.derive("r", "x", kind="cache", parents=[q])
    s = store.derive("s", "x", kind="cache", parents=[r])
    store.add_parent(r, other)
    assert store.visible([q, r, s]).tolist() == [True, False, False]
    assert store.explain("s").causes[0].kind == "delete"


def test_add_parent_refuses_younger_and_unknown_ones(store: mr.Store) -> None:
    made = chain(store)
    with pytest.raises(mr.InvalidRequestError, match="not older"):
        store.add_parent(made["p"], made["a"])
    with pytest.raises(mr.InvalidRequestError, match="not older"):
        store.add_parent(made["p"], made["p"])
    with pytest.raises(mr.UnknownKeyError):
        store.add_parent(999, made["p"])


def test_semantic_edges_never_propagate(store: mr.Store) -> None:
    a, b = store.put("a", "x"), store.put("b", "x")
    store.relate(a, b, 0.75)
    assert store.similar(a) == [(b.version, 0.75)]
    store.delete("a")
    assert store.visible([b])[0]
    store.delete("b")
    assert store.similar(a) == []


def test_batch_is_all_or_nothing_and_reads_itself(store: mr.Store) -> None:
    with store.batch() as batch:
        p = batch.put("p", "x")
        batch.derive("a", "y", kind="cache", parents=[p])
    assert store.get("a").parents == (p,)
    with pytest.raises(RuntimeError), store.batch() as batch:
        batch.put("q", "x")
        raise RuntimeError
    assert store.find(prefix="q") == []
    with pytest.raises(mr.InvalidRequestError, match="correction"), store.batch() as batch:
        batch.put("r", "x")
        batch.put("p", "changed")
    assert [info.key for info in store.find()] == ["a", "p"]


def test_a_batch_is_the_only_way_to_write_while_it_is_open(store: mr.Store) -> None:
    with store.batch() as batch:
        batch.put("p", "x")
        with pytest.raises(mr.InvalidRequestError, match="a batch is open"):
            store.put("q", "x")
        assert store.find() == []  # reads go on, and see nothing of it yet
    assert [info.key for info in store.find()] == ["p"]


def test_batch_supersedes_within_itself(store: mr.Store) -> None:
    with store.batch() as batch:
        first = batch.put("p", "x")
        second = batch.put("p", "y", supersede=True)
    assert store.visible([first, second]).tolist() == [False, True]
    assert [info.version for info in store.history("p")] == [second, first]


def test_reads_and_gap_hits_are_counted_and_survive(place: str) -> None:
    with mr.open(place) as store:
        store.put("p", "x")
        for _ in range(3):
            store.get("p")
        store.delete("p")
        store.get_many(["p", "p"])
    with mr.open(place) as store, store._reading() as view:
        use = view.snapshot.uses(["p"])["p"]
        assert (use.reads, use.gaps) == (3, 2)
    with mr.open(place, count_reads=False) as store:
        store.get_many(["p"])
    with mr.open(place) as store, store._reading() as view:
        assert view.snapshot.uses(["p"])["p"].gaps == 2


def test_a_second_handle_sees_a_withdrawal_at_once(place: str) -> None:
    with mr.open(place) as a, mr.open(place) as b:
        made = chain(a)
        assert b.get("c").content == "from a and b"
        a.delete("p")
        assert not b.visible(made.values()).any()
        with pytest.raises(mr.WithdrawnError):
            b.get("c")


def test_closed_and_forked_stores_refuse(place: str) -> None:
    store = mr.open(place)
    store.put("p", "x")
    child = os.fork()
    if not child:
        try:
            store.get("p")
        except mr.ClosedStoreError:
            os._exit(42)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    store.close()
    store.close()
    with pytest.raises(mr.ClosedStoreError):
        store.get("p")
    with pytest.raises(mr.ClosedStoreError):
        store.put("p", "y")


def test_async_calls_are_the_same_calls(store: mr.Store) -> None:
    async def work() -> str:
        await store.aio.put("p", "x")
        return str((await store.aio.get("p")).content)

    assert asyncio.run(work()) == "x"
    with pytest.raises(AttributeError, match="no call"):
        _ = store.aio.batch


def test_history_is_unknown_for_an_unknown_key(store: mr.Store) -> None:
    with pytest.raises(mr.UnknownKeyError):
        store.history("nothing")


def test_open_without_create_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pytest.raises(mr.MissingStoreError, match="does not exist"):
        mr.open(path, create=False)
    assert not path.exists()
    path.touch()
    with pytest.raises(mr.MissingStoreError, match="empty"):
        mr.open(path, create=False)
    assert path.read_bytes() == b""
    mr.open(path, scope="real").close()
    with pytest.raises(mr.MissingStoreError, match="'real'"):
        mr.open(path, scope="rael", create=False)
    mr.open(path, scope="real", create=False).close()
    with mr.open(path, scope="real") as store:
        assert store._scope.backend.scopes() == ["real"]
