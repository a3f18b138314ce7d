-- The three tables of a Store. Times are milliseconds since 1970, in UTC.
CREATE TABLE IF NOT EXISTS till_outbox (
  idempotency_key TEXT NOT NULL PRIMARY KEY,
  kind            TEXT NOT NULL,
  order_id        TEXT NOT NULL,
  attempt         INTEGER NOT NULL,
  body            BLOB NOT NULL,
  state           TEXT NOT NULL,
  tries           INTEGER NOT NULL,
  next_at         INTEGER NOT NULL,
  lease           INTEGER NOT NULL,
  send_until      INTEGER NOT NULL,
  remote_id       TEXT UNIQUE,
  status          TEXT NOT NULL,
  problem         TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  details         TEXT,
  UNIQUE (kind, order_id, attempt)
);
CREATE INDEX IF NOT EXISTS till_outbox_due ON till_outbox (state, next_at);
CREATE TABLE IF NOT EXISTS till_subject (
  subject    TEXT NOT NULL PRIMARY KEY,
  rank       INTEGER NOT NULL,
  seen       TEXT NOT NULL,
  sequence   INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS till_cursor (
  name           TEXT NOT NULL PRIMARY KEY,
  log_id         TEXT NOT NULL,
  after_sequence INTEGER NOT NULL
);
