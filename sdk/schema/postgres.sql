-- The three tables of a Store. Times are milliseconds since 1970, in UTC.
CREATE TABLE IF NOT EXISTS till_outbox (
  idempotency_key TEXT NOT NULL PRIMARY KEY,
  kind            TEXT NOT NULL,
  order_id        TEXT NOT NULL,
  attempt         INTEGER NOT NULL,
  body            BYTEA NOT NULL,
  state           TEXT NOT NULL,
  tries           INTEGER NOT NULL,
  next_at         BIGINT NOT NULL,
  lease           BIGINT NOT NULL,
  send_until      BIGINT NOT NULL,
  remote_id       TEXT UNIQUE,
  status          TEXT NOT NULL,
  problem         TEXT NOT NULL,
  created_at      BIGINT NOT NULL,
  details         TEXT,
  UNIQUE (kind, order_id, attempt)
);
CREATE INDEX IF NOT EXISTS till_outbox_due ON till_outbox (state, next_at);
CREATE TABLE IF NOT EXISTS till_subject (
  subject    TEXT NOT NULL PRIMARY KEY,
  rank       INTEGER NOT NULL,
  seen       TEXT NOT NULL,
  sequence   BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS till_cursor (
  name           TEXT NOT NULL PRIMARY KEY,
  log_id         TEXT NOT NULL,
  after_sequence BIGINT NOT NULL
);
