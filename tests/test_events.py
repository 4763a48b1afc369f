"""Events: the barrier, idempotence, the guard, undo and abandon, on every backend."""

from __future__ import annotations

import random

import pytest
from stores import chain, echo_rules

import memorepair as mr


@pytest.mark.parametrize("kind", ["delete", "suspect"])
def test_the_whole_cascade_goes_before_the_call_returns(store: mr.Store, kind: str) -> None:
    made = chain(store)
    kept = store.put("kept", "x")
    event = getattr(store, kind)("p", event_id="e1", reason="why")
    assert (event.kind, event.withdrawn, event.cascade, event.roots) == (kind, 4, 4, ("p",))
    assert not store.visible(made.values()).any()
    assert store.get("kept").version == kept.version


def test_correct_replaces_the_root_in_the_same_transaction(store: mr.Store) -> None:
    made = chain(store)
    event = store.correct("p", "better")
    assert store.get("p").content == "better"
    assert event.withdrawn == 4
    assert not store.visible(made.values()).any()


def test_correct_keeps_what_is_not_content(store: mr.Store) -> None:
    store.put("p", "x", title="T", labels={"a": "b"}, namespace="n", weight=3)
    store.correct("p", "y")
    got = store.get("p")
    assert (got.title, got.labels, got.namespace, got.weight) == ("T", {"a": "b"}, "n", 3_000_000)


def test_several_roots_are_one_event(store: mr.Store) -> None:
    made = chain(store)
    q = store.put("q", "x")
    r = store.derive("r", "x", kind="cache", parents=[q])
    event = store.delete(["p", "q", q])
    assert event.withdrawn == 6
    assert not store.visible([*made.values(), q, r]).any()
    store.put("s", "1")
    store.put("t", "1")
    assert store.correct({"s": "2", "t": "2"}).roots == ("s", "t")


def test_a_selector_is_resolved_once(store: mr.Store) -> None:
    for i in range(3):
        store.put(f"x/{i}", "v", labels={"team": "a" if i else "b"})
    event = store.delete(mr.where(labels={"team": "a"}, prefix="x/"), event_id="sweep")
    assert event.roots == ("x/1", "x/2")
    store.put("x/9", "v", labels={"team": "a"})
    assert store.delete(mr.where(labels={"team": "a"}, prefix="x/"), event_id="sweep") == event
    assert [info.key for info in store.find()] == ["x/0", "x/9"]


def test_selectors_by_kind_operator_and_epochs(store: mr.Store) -> None:
    p = store.put("p", "x")
    a = store.derive("a", "x", kind="cache", parents=[p], operator="f@1")
    store.derive("b", "x", kind="cache", parents=[p], operator="f@2")
    c = store.derive("c", "x", kind="skill", form="chain", parents=[p], operator="g@1")
    assert store.impact(mr.where(operator="f")).withdrawn == 2
    assert [row.key for row in store.impact(mr.where(operator="f@1")).rows] == ["a"]
    assert [row.key for row in store.impact(mr.where(kind="skill")).rows] == ["c"]
    assert {row.key for row in store.impact(mr.where(epochs=(a.epoch, c.epoch))).rows} == {"a", "b", "c"}
    with pytest.raises(mr.InvalidRequestError, match="at least one condition"):
        mr.where()


def test_key_at_version_names_one_version(store: mr.Store) -> None:
    one = store.put("p", "1")
    a = store.derive("a", "x", kind="cache", parents=[one])
    two = store.put("p", "2", supersede=True)
    b = store.derive("b", "x", kind="cache", parents=[two])
    store.delete(f"p@{one.version}")
    assert store.visible([two, b, a]).tolist() == [True, True, False]
    store.put("odd@7", "a key may look like that")
    assert store.delete("odd@7").roots == ("odd@7",)


def test_delete_takes_every_version_of_a_key(store: mr.Store) -> None:
    one = store.put("p", "1")
    a = store.derive("a", "x", kind="cache", parents=[one])
    store.put("p", "2", supersede=True)
    store.delete("p")
    assert not store.visible([a])[0]


def test_same_id_and_request_same_reply_from_any_handle(place: str) -> None:
    with mr.open(place) as store:
        chain(store)
        first = store.correct("p", "better", event_id="crm-881")
    with mr.open(place) as store:
        store.correct("p", "even better", event_id="crm-882")
        assert store.correct("p", "better", event_id="crm-881") == first
        assert store.get("p").content == "even better"
        assert len(store.events()) == 2


def test_same_id_other_request_is_a_conflict(store: mr.Store) -> None:
    made = chain(store)
    q = store.put("q", "x")
    store.delete("p", event_id="e1")
    for again in (lambda: store.delete("q", event_id="e1"), lambda: store.suspect("p", event_id="e1")):
        with pytest.raises(mr.EventConflictError):
            again()
    assert store.visible([q])[0]
    assert not store.visible(made.values()).any()


@pytest.mark.parametrize("kind", ["delete", "suspect", "correct", "migrate"])
def test_unknown_roots_change_nothing(store: mr.Store, kind: str) -> None:
    store.put("p", "x")
    call = getattr(store, kind)
    with pytest.raises(mr.UnknownKeyError, match="nothing was changed"):
        call({"p": "y", "zz": "y"}) if kind in ("correct", "migrate") else call(["p", "zz"])
    assert store.get("p").content == "x"
    assert store.events() == []


def test_an_equal_correction_withdraws_nothing_and_stays_idempotent(store: mr.Store) -> None:
    made = chain(store)
    event = store.correct("p", "source", event_id="e1")
    assert event.is_unchanged
    assert store.visible(made.values()).all()
    store.correct("p", "other", event_id="e2")
    assert store.correct("p", "source", event_id="e1") == event
    assert store.get("p").content == "other"


def test_a_correction_reaches_what_was_made_under_an_older_label(store: mr.Store) -> None:
    made = chain(store)
    store.put("p", "source", labels={"team": "ops"})
    event = store.correct("p", "other", event_id="e1")
    assert not store.visible([made["a"], made["b"], made["c"]]).any()
    assert event.withdrawn == 4
    assert set(store.undo("e1").restored) == {"a", "b", "c", "p"}
    assert store.get("p").labels == {"team": "ops"}


def test_a_correction_spares_what_was_made_from_an_older_truth(store: mr.Store) -> None:
    made = chain(store)
    store.put("p", "the new truth", supersede=True)
    store.correct("p", "the newest truth")
    assert store.visible([made["a"], made["b"], made["c"]]).all()


def test_migrate_is_for_interfaces_only(store: mr.Store) -> None:
    tool = store.put("tool", {"v": 1}, form="interface")
    skill = store.derive("k", "steps", kind="skill", form="chain", parents=[tool])
    store.put("doc", "x")
    with pytest.raises(mr.InvalidRequestError, match="form interface"):
        store.migrate("doc", "y")
    store.migrate("tool", {"v": 2})
    assert not store.visible([skill])[0]
    assert store.get("tool").content == {"v": 2}
    assert store.get("tool").form == "interface"


def test_correct_of_a_deleted_key_says_put(store: mr.Store) -> None:
    store.put("p", "x")
    store.delete("p")
    with pytest.raises(mr.WithdrawnError, match=r"put\(\)"):
        store.correct("p", "y")


def test_correct_of_a_held_key_is_its_successor(store: mr.Store) -> None:
    made = chain(store)
    store.correct("p", "other")
    store.correct("a", "written by a person")
    assert store.get("a").content == "written by a person"
    assert not store.visible([made["b"]])[0]
    assert [item.key for item in mr.plan(store, None, echo_rules()).items] == ["b", "c"]


def test_the_guard_refuses_and_confirm_lets_through(place: str) -> None:
    with mr.open(place, max_cascade=3) as store:
        made = chain(store)
        with pytest.raises(mr.CascadeTooLargeError, match="suspect") as refused:
            store.delete("p")
        assert store.visible(made.values()).all()
        impact = store.impact("p")
        assert impact.is_guarded
        assert impact == refused.value.impact
        with pytest.raises(mr.CascadeTooLargeError):
            store.correct("p", "other", confirm=impact.confirm)  # another request
        store.put("new", "x")
        store.delete("p", confirm=impact.confirm)
        assert not store.visible(made.values()).any()


def test_confirm_holds_until_the_cascade_has_grown_by_a_tenth(place: str) -> None:
    with mr.open(place, max_cascade=0) as store:
        p = store.put("p", "x")
        for i in range(9):
            store.derive(f"d{i}", "x", kind="cache", parents=[p])
        confirm = store.impact("p").confirm
        store.derive("d9", "x", kind="cache", parents=[p])
        store.derive("d10", "x", kind="cache", parents=[p])
        with pytest.raises(mr.CascadeTooLargeError):
            store.delete("p", confirm=confirm)
        store.delete("d10", confirm=store.impact("d10").confirm)
        store.delete("p", confirm=confirm)


def test_suspect_never_waits(place: str) -> None:
    with mr.open(place, max_cascade=0) as store:
        made = chain(store)
        store.suspect("p")
        assert not store.visible(made.values()).any()


def test_the_default_guard_needs_a_hundred(store: mr.Store) -> None:
    p = store.put("p", "x")
    with store.batch() as batch:
        for i in range(99):
            batch.derive(f"d{i}", "x", kind="cache", parents=[p])
    assert not store.impact("p").is_guarded
    store.derive("d99", "x", kind="cache", parents=[p])
    assert store.impact("p").is_guarded
    with pytest.raises(mr.CascadeTooLargeError):
        store.put("p", "y")


@pytest.mark.parametrize("limit", [-1, 1.5, True, "0.2", float("nan")])
def test_a_guard_without_sense_is_refused(limit: object) -> None:
    with pytest.raises(mr.InvalidRequestError):
        mr.open(":memory:", max_cascade=limit)  # type: ignore[arg-type]


def test_impact_lists_keys_titles_and_paths_and_changes_nothing(store: mr.Store) -> None:
    p = store.put("p", "x", title="The source")
    a = store.derive("a", "x", kind="cache", parents=[p])
    b = store.derive("b", "x", kind="cache", parents=[p])
    store.derive("c", "x", kind="summary", parents=[a, b], title="The end")
    impact = store.impact("p")
    assert [(row.key, row.title) for row in impact.rows] == [
        ("p", "The source"),
        ("a", None),
        ("b", None),
        ("c", "The end"),
    ]
    assert impact.path("c") == ["p", "a", "c"]
    assert impact.path("p") == ["p"]
    assert "The end" in str(impact)
    assert store.impact({"p": "y"}).kind == "correct"
    with pytest.raises(mr.UnknownKeyError):
        impact.path("zz")
    with pytest.raises(mr.InvalidRequestError):
        store.impact("p", kind="migrate")
    assert store.events() == []
    assert len(store.find()) == 4


# -- undo --------------------------------------------------------------------------------------------------------------


def test_undo_of_a_delete_restores_by_new_versions(store: mr.Store) -> None:
    made = chain(store)
    store.delete("p", event_id="e1")
    undo = store.undo("e1")
    assert (set(undo.restored), undo.left) == ({"p", "a", "b", "c"}, ())
    assert not store.visible(made.values()).any()
    assert store.get("c").content == "from a and b"
    assert set(store.get("c").parents) == {store.get("a").version, store.get("b").version}
    assert store.undo("e1") == undo


def test_undo_of_a_correct_takes_the_replacement_back_with_what_was_made_from_it(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "wrong", event_id="e1")
    made = store.derive("n", "from wrong", kind="cache", parents=[store.get("p")])
    undo = store.undo("e1", reason="it was right before")
    assert store.get("p").content == "source"
    assert store.get("c").content == "from a and b"
    assert not store.visible([made])[0]
    assert undo.withdrawn == 2


def test_undo_leaves_what_another_event_forbids(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "x")
    store.derive("s", "both", kind="summary", optional=[p, q])
    store.delete("p", event_id="e1")
    store.delete("q", event_id="e2")
    undo = store.undo("e1")
    assert (undo.restored, undo.left) == (("p",), ("s",))
    with pytest.raises(mr.WithdrawnError):
        store.get("s")
    # Its parent came back in another undo, so s is not put back by the letter; it can be repaired.
    assert store.undo("e2").left == ("s",)
    assert held(store) == ["s"]


def test_undo_does_not_touch_a_key_with_a_newer_head(store: mr.Store) -> None:
    chain(store)
    store.delete("p", event_id="e1")
    store.put("p", "a new life")
    undo = store.undo("e1")
    assert "p" not in undo.restored
    assert store.get("p").content == "a new life"
    with pytest.raises(mr.WithdrawnError):
        store.get("a")


def test_delete_wins_over_undo_of_an_earlier_event(store: mr.Store) -> None:
    chain(store)
    store.delete("p", event_id="e1")
    store.delete("a", event_id="e2")
    undo = store.undo("e1")
    assert undo.restored == ("p",)
    with pytest.raises(mr.WithdrawnError):
        store.get("a")


def test_undo_of_unknown_undone_or_undo_is_refused(store: mr.Store) -> None:
    store.put("p", "x")
    store.delete("p", event_id="e1")
    undo = store.undo("e1")
    with pytest.raises(mr.UnknownKeyError):
        store.undo("e9")
    with pytest.raises(mr.InvalidRequestError, match="was undone"):
        store.undo("e1", undo_id="another")
    with pytest.raises(mr.InvalidRequestError, match="itself an undo"):
        store.undo(undo.event_id)


# -- abandon, holds ----------------------------------------------------------------------------------------------------


def held(store: mr.Store, event: str | None = None) -> list[str]:
    return [item.key for item in mr.plan(store, event, echo_rules()).items]


def test_abandon_ends_the_holds_for_good(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "other", event_id="e1")
    assert held(store) == ["a", "b", "c"]
    assert store.abandon("e1") == store.abandon("e1")
    assert held(store) == []
    assert store.status().events[0].state == "abandoned"
    with pytest.raises(mr.WithdrawnError):
        store.get("a")
    with pytest.raises(mr.UnknownKeyError):
        store.abandon("e9")


def test_what_joins_an_abandoned_event_late_can_be_abandoned_too(store: mr.Store) -> None:
    made = chain(store)
    store.correct("p", "other", event_id="e1")
    store.abandon("e1")
    store.derive("late", "x", kind="cache", parents=[made["a"]], stale="withdraw", operator="echo@1")
    assert held(store) == ["late"]
    assert store.status().events[0].state == "open"
    store.abandon("e1")
    assert held(store) == []
    assert store.status().events[0].state == "abandoned"


def test_another_events_hold_survives_an_abandon(store: mr.Store) -> None:
    p, q = store.put("p", "x"), store.put("q", "x")
    store.derive("s", "both", kind="summary", optional=[p, q], operator="echo@1")
    store.correct("p", "y", event_id="e1")
    store.correct("q", "y", event_id="e2")
    store.abandon("e1")
    assert held(store) == ["s"]
    assert held(store, "e1") == []


def test_delete_ends_the_hold_on_its_root_only(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "other", event_id="e1")
    store.delete("b", event_id="e2")
    assert held(store) == ["a", "c"]
    assert held(store, "e1") == ["a", "c"]


def test_suspect_holds_its_root(store: mr.Store) -> None:
    chain(store)
    store.suspect("a", event_id="e1")
    assert held(store, "e1") == ["a", "b", "c"]


def test_a_fresh_derive_ends_the_hold(store: mr.Store) -> None:
    chain(store)
    store.correct("p", "other")
    store.derive("a", "anew", kind="cache", parents=[store.get("p")])
    assert held(store) == ["b", "c"]


def test_the_barrier_only_grows(store: mr.Store) -> None:
    rng = random.Random(7)
    withdrawn: set[int] = set()
    made: list[mr.Artifact] = []
    for step in range(60):
        keys = [info.key for info in store.find()]
        if keys and rng.random() < 0.25:
            getattr(store, rng.choice(["delete", "suspect"]))(rng.choice(keys))
        elif keys and rng.random() < 0.2:
            store.correct(rng.choice(keys), f"c{step}")
        else:
            parents = [store.get(key) for key in rng.sample(keys, min(2, len(keys)))]
            made.append(store.derive(f"k{rng.randrange(12)}", f"v{step}", kind="cache", parents=parents))
        now = {
            info.version
            for key in {art.key for art in made}
            for info in store.history(key)
            if info.state == "withdrawn"
        }
        assert withdrawn <= now
        withdrawn = now
    assert withdrawn
