-- The stored format, version 1. `id` packs (scope << 32) | version, so that one integer key keeps the versions of a
-- scope together and in order. Version rows are never altered but for `parents`; nothing is ever replaced.
-- kind, form, origin, completeness, state: the words of protocol.py. Amounts are micro-units, instants microseconds.
-- parents: little-endian uint32 ids, required ones first. closure: a serialised mask. Source: docs/SEMANTICS.md section 3.

CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE scope(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL,
  next_version INTEGER NOT NULL) STRICT;

CREATE TABLE version(id INTEGER PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL,
  epoch INTEGER NOT NULL, origin TEXT NOT NULL, form TEXT, namespace TEXT NOT NULL, title TEXT, labels TEXT NOT NULL,
  operator TEXT, operator_version TEXT, cost INTEGER, unit TEXT, weight INTEGER NOT NULL, expires_at INTEGER,
  completeness TEXT NOT NULL, parents BLOB NOT NULL, num_required INTEGER NOT NULL, previous INTEGER NOT NULL,
  facts TEXT) STRICT;

CREATE INDEX version_expiring ON version(id, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE content(id INTEGER PRIMARY KEY, state TEXT NOT NULL, codec TEXT NOT NULL, body BLOB NOT NULL) STRICT;

CREATE TABLE head(scope INTEGER NOT NULL, key TEXT NOT NULL, head INTEGER NOT NULL, latest INTEGER NOT NULL,
  floor INTEGER NOT NULL,
  PRIMARY KEY(scope, key)) STRICT, WITHOUT ROWID;

CREATE TABLE event(scope INTEGER NOT NULL, event_id TEXT NOT NULL, kind TEXT NOT NULL, epoch INTEGER NOT NULL,
  digest BLOB NOT NULL, roots TEXT NOT NULL, closure BLOB NOT NULL, num_withdrawn INTEGER NOT NULL, reason TEXT NOT NULL,
  soft INTEGER NOT NULL, undoes TEXT, restored TEXT NOT NULL, abandoned TEXT NOT NULL, recorded_at INTEGER NOT NULL,
  PRIMARY KEY(scope, event_id)) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX event_by_epoch ON event(scope, epoch);

CREATE TABLE late(scope INTEGER NOT NULL, event_epoch INTEGER NOT NULL, version INTEGER NOT NULL, epoch INTEGER NOT NULL,
  PRIMARY KEY(scope, epoch, event_epoch, version)) STRICT, WITHOUT ROWID;

CREATE TABLE similar(scope INTEGER NOT NULL, source INTEGER NOT NULL, target INTEGER NOT NULL, score INTEGER NOT NULL,
  PRIMARY KEY(scope, source, target)) STRICT, WITHOUT ROWID;

CREATE TABLE ledger(scope INTEGER NOT NULL, epoch INTEGER NOT NULL, kind TEXT NOT NULL, inserted BLOB NOT NULL,
  crowned BLOB NOT NULL, dethroned BLOB NOT NULL, reparented BLOB NOT NULL, expiring BLOB NOT NULL, event_id TEXT,
  recorded_at INTEGER NOT NULL, PRIMARY KEY(scope, epoch)) STRICT, WITHOUT ROWID;

CREATE TABLE fate(scope INTEGER NOT NULL, version INTEGER NOT NULL, key TEXT NOT NULL, fate TEXT NOT NULL,
  reason TEXT NOT NULL, attempt INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY(scope, version)) STRICT, WITHOUT ROWID;

CREATE TABLE attempt(scope INTEGER NOT NULL, attempt INTEGER NOT NULL, state TEXT NOT NULL, token INTEGER NOT NULL,
  event_id TEXT, plan_digest TEXT NOT NULL, plan_epoch INTEGER NOT NULL, owner TEXT NOT NULL, heartbeat INTEGER NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY(scope, attempt)) STRICT, WITHOUT ROWID;

CREATE TABLE stage(scope INTEGER NOT NULL, attempt INTEGER NOT NULL, version INTEGER NOT NULL, row BLOB NOT NULL,
  codec TEXT NOT NULL, body BLOB NOT NULL, head INTEGER NOT NULL,
  head_parents BLOB NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY(scope, attempt, version)) STRICT;

CREATE TABLE use(scope INTEGER NOT NULL, key TEXT NOT NULL, reads INTEGER NOT NULL, gaps INTEGER NOT NULL,
  PRIMARY KEY(scope, key)) STRICT, WITHOUT ROWID;
