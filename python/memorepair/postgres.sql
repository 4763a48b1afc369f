-- The stored format in PostgreSQL, version 1: the tables of schema.sql, in a schema of their own. What differs: a
-- version's id is (scope, version); instants, amounts and ids are bigint; reasons are UTF-8 bytes, since they are free
-- text and PostgreSQL's text cannot hold NUL. Keys sort by their bytes (COLLATE "C"), as everywhere.
-- scope: its row is the gate. Every write begins by raising `epoch`, which locks the row until the end, and the room
-- left by the fill factor keeps such updates within a page. event_epoch, late_epoch: the last epoch that added an event
-- or a late row, so that nobody asks for newer ones in vain. ledger.mark: which transaction wrote the row, so that a
-- commit whose answer was lost can be found. There are no foreign keys: a check would lock the gate's row.
-- Later tables (sessions, sinks, receipts) join with the next version in meta; content.state knows erased and pruned.

CREATE TABLE memorepair.meta(name text PRIMARY KEY, value text NOT NULL);

CREATE TABLE memorepair.scope(id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
  epoch bigint NOT NULL, next_version bigint NOT NULL, event_epoch bigint NOT NULL, late_epoch bigint NOT NULL)
  WITH (fillfactor = 10);

CREATE TABLE memorepair.version(scope integer NOT NULL, version bigint NOT NULL, key text COLLATE "C" NOT NULL,
  kind text NOT NULL, digest bytea NOT NULL, epoch bigint NOT NULL, origin text NOT NULL, form text,
  namespace text NOT NULL, title text, labels text NOT NULL, operator text, operator_version text, cost bigint, unit text,
  weight bigint NOT NULL, expires_at bigint, completeness text NOT NULL, parents bytea NOT NULL,
  num_required integer NOT NULL, previous bigint NOT NULL, facts text, PRIMARY KEY(scope, version));

CREATE INDEX version_expiring ON memorepair.version(scope, version, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE memorepair.content(scope integer NOT NULL, version bigint NOT NULL, state text NOT NULL, codec text NOT NULL,
  body bytea NOT NULL, PRIMARY KEY(scope, version));

CREATE TABLE memorepair.head(scope integer NOT NULL, key text COLLATE "C" NOT NULL, head bigint NOT NULL,
  latest bigint NOT NULL, floor bigint NOT NULL, PRIMARY KEY(scope, key));

CREATE TABLE memorepair.event(scope integer NOT NULL, event_id text COLLATE "C" NOT NULL, kind text NOT NULL,
  epoch bigint NOT NULL, digest bytea NOT NULL, roots text NOT NULL, closure bytea NOT NULL, num_withdrawn bigint NOT NULL,
  reason bytea NOT NULL, soft boolean NOT NULL, undoes text, restored text NOT NULL, abandoned bigint[] NOT NULL,
  recorded_at bigint NOT NULL, PRIMARY KEY(scope, event_id), UNIQUE(scope, epoch));

CREATE TABLE memorepair.late(scope integer NOT NULL, event_epoch bigint NOT NULL, version bigint NOT NULL,
  epoch bigint NOT NULL, PRIMARY KEY(scope, epoch, event_epoch, version));

CREATE TABLE memorepair.similar(scope integer NOT NULL, source bigint NOT NULL, target bigint NOT NULL,
  score bigint NOT NULL, PRIMARY KEY(scope, source, target));

CREATE TABLE memorepair.ledger(scope integer NOT NULL, epoch bigint NOT NULL, kind text NOT NULL, inserted bytea NOT NULL,
  crowned bytea NOT NULL, dethroned bytea NOT NULL, reparented bytea NOT NULL, expiring bytea NOT NULL, event_id text,
  recorded_at bigint NOT NULL, mark bytea NOT NULL, PRIMARY KEY(scope, epoch));

CREATE TABLE memorepair.fate(scope integer NOT NULL, version bigint NOT NULL, key text NOT NULL, fate text NOT NULL,
  reason bytea NOT NULL, attempt bigint NOT NULL, epoch bigint NOT NULL, PRIMARY KEY(scope, version));

CREATE TABLE memorepair.attempt(scope integer NOT NULL, attempt bigint NOT NULL, state text NOT NULL, token bigint NOT NULL,
  event_id text, plan_digest text NOT NULL, plan_epoch bigint NOT NULL, owner text NOT NULL, heartbeat bigint NOT NULL,
  reason bytea NOT NULL, PRIMARY KEY(scope, attempt));

CREATE TABLE memorepair.stage(scope integer NOT NULL, attempt bigint NOT NULL, version bigint NOT NULL,
  "row" bytea NOT NULL, codec text NOT NULL, body bytea NOT NULL, head bigint NOT NULL, head_parents bytea NOT NULL,
  state text NOT NULL, reason bytea NOT NULL, PRIMARY KEY(scope, attempt, version));

CREATE TABLE memorepair.use(scope integer NOT NULL, key text COLLATE "C" NOT NULL, reads bigint NOT NULL,
  gaps bigint NOT NULL, PRIMARY KEY(scope, key));
