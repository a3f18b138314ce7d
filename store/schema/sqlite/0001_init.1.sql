-- The whole first schema. Every table is led by client_id and every unique
-- key contains it, so that a distributed engine can shard by it. Ids are 16
-- bytes, times are microseconds UTC, money is minor units.
--
-- What must never happen is refused here, whatever the program believes.
-- (Checks say a = x OR a = y: for IN with three values SQLite builds a table
-- at every insert.)

CREATE TABLE installation (
	one          INTEGER PRIMARY KEY CHECK (one = 1),
	log_id       BLOB    NOT NULL, -- changes if a restore lost history
	secret_check BLOB    NOT NULL, -- proves that an instance holds our secret
	created_at   INTEGER NOT NULL
) STRICT;

-- Where payments are sent: the account behind each name, so that a changed
-- configuration is noticed.
CREATE TABLE connections (
	name        TEXT PRIMARY KEY,
	fingerprint TEXT NOT NULL
) STRICT;

CREATE TABLE clients (
	client_id  BLOB    NOT NULL PRIMARY KEY,
	name       TEXT    NOT NULL,
	mode       TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
	suspended  INTEGER NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1)),
	created_at INTEGER NOT NULL
) STRICT;

-- The one contended row of a client: whoever holds it gives out times and
-- sequences, so their order is the order of commits.
CREATE TABLE client_heads (
	client_id  BLOB    NOT NULL PRIMARY KEY,
	last_time  INTEGER NOT NULL,
	last_event INTEGER NOT NULL,
	last_audit INTEGER NOT NULL
) STRICT;

CREATE TABLE client_methods (
	client_id BLOB NOT NULL,
	method    TEXT NOT NULL,
	PRIMARY KEY (client_id, method)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
	client_id    BLOB    NOT NULL,
	key_id       TEXT    NOT NULL,
	name         TEXT,
	scopes       TEXT    NOT NULL, -- separated by spaces
	secret_hash  BLOB    NOT NULL CHECK (length(secret_hash) = 32),
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER,
	revoked_at   INTEGER,
	last_used_at INTEGER,
	exposed_at   INTEGER,
	PRIMARY KEY (client_id, key_id)
) STRICT;

-- Global look-up: whose key is this?
CREATE TABLE key_clients (
	key_id    TEXT NOT NULL PRIMARY KEY,
	client_id BLOB NOT NULL
) STRICT;

-- Every legal change of a payment's status, and no other.
CREATE TABLE payment_moves (
	from_status TEXT NOT NULL,
	to_status   TEXT NOT NULL,
	PRIMARY KEY (from_status, to_status)
) STRICT, WITHOUT ROWID;

INSERT INTO payment_moves (from_status, to_status) VALUES
	('', 'pending'),
	('pending', 'processing'), ('pending', 'success'), ('pending', 'failed'), ('pending', 'expired'),
	('processing', 'success'), ('processing', 'failed'), ('processing', 'expired');

CREATE TABLE payments (
	client_id            BLOB    NOT NULL,
	id                   BLOB    NOT NULL, -- its order is the order of created_at
	idempotency_key      BLOB    NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,             -- where it was not spelled in lower case
	body_hash            BLOB    NOT NULL CHECK (length(body_hash) = 32),
	body_version         INTEGER NOT NULL, -- the list of members that body_hash covers
	status               TEXT    NOT NULL,
	previous_status      TEXT    NOT NULL DEFAULT '',
	method               TEXT    NOT NULL,
	country              TEXT,
	amount               INTEGER NOT NULL CHECK (amount > 0),
	currency             TEXT    NOT NULL,
	phone                TEXT    NOT NULL,
	reference            TEXT,
	document             BLOB    NOT NULL, -- what is echoed as sent
	provider_reference   TEXT,
	failure_reason       TEXT,
	failure_code         TEXT,
	failure_message      TEXT,
	failure_retryable    INTEGER,
	created_at           INTEGER NOT NULL,
	updated_at           INTEGER NOT NULL,
	expires_at           INTEGER NOT NULL,
	approval_window      INTEGER NOT NULL,
	connection           TEXT    NOT NULL,
	fingerprint          TEXT    NOT NULL,
	attention            INTEGER NOT NULL DEFAULT 0 CHECK (attention IN (0, 1)),
	checked_at           INTEGER,          -- copied from the step when it ends
	calls                INTEGER NOT NULL DEFAULT 0,
	pending_event        INTEGER NOT NULL, -- the sequences of its events
	processing_event     INTEGER,
	final_event          INTEGER,
	late_event           INTEGER,
	UNIQUE (client_id, id),
	UNIQUE (client_id, idempotency_key),
	FOREIGN KEY (previous_status, status) REFERENCES payment_moves (from_status, to_status),
	CHECK (updated_at >= created_at),
	CHECK ((status = 'success' OR status = 'failed' OR status = 'expired') = (final_event IS NOT NULL)),
	CHECK (status <> 'processing' OR processing_event IS NOT NULL),
	CHECK ((status = 'failed' OR status = 'expired') = (failure_reason IS NOT NULL)),
	CHECK (late_event IS NULL OR status = 'failed' OR status = 'expired')
) STRICT;

CREATE INDEX payments_reference ON payments (client_id, reference) WHERE reference IS NOT NULL;
CREATE UNIQUE INDEX payments_receipt ON payments (client_id, provider_reference, connection) WHERE provider_reference IS NOT NULL;

-- What is due, and nothing else: a row exists while a call to an operator is
-- scheduled, and carries what the calls so far have shown.
CREATE TABLE steps (
	client_id       BLOB    NOT NULL,
	subject_id      BLOB    NOT NULL,
	kind            TEXT    NOT NULL CHECK (kind IN ('payment')),
	due_at          INTEGER NOT NULL,
	lease_until     INTEGER NOT NULL DEFAULT 0,
	lease_version   INTEGER NOT NULL DEFAULT 0,
	wake_seq        INTEGER NOT NULL DEFAULT 0,
	calls           INTEGER NOT NULL DEFAULT 0, -- calls that have ended
	checked_at      INTEGER NOT NULL DEFAULT 0, -- when the last one ended
	sends           INTEGER NOT NULL DEFAULT 0, -- sends that may have begun
	send_started_at INTEGER NOT NULL DEFAULT 0,
	send_deadline   INTEGER NOT NULL DEFAULT 0, -- after it no byte of the latest send leaves us
	acked           INTEGER NOT NULL DEFAULT 0, -- the operator was seen to hold it
	absent          INTEGER NOT NULL DEFAULT 0, -- agreeing reads that prove it absent
	slow            INTEGER NOT NULL DEFAULT 0, -- how often the pace was halved
	late_from       INTEGER NOT NULL DEFAULT 0, -- when it ended other than in success
	late_reads      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (client_id, subject_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX steps_due ON steps (due_at);

-- Calls to operators. The first row of a payment is written before the first
-- byte is sent; equal answers in a row are one row.
CREATE TABLE attempts (
	client_id  BLOB    NOT NULL,
	subject_id BLOB    NOT NULL,
	n          INTEGER NOT NULL CHECK (n > 0),
	kind       TEXT    NOT NULL CHECK (kind = 'submit' OR kind = 'check' OR kind = 'resolve'),
	connection TEXT    NOT NULL,
	reference  BLOB    NOT NULL CHECK (length(reference) = 16),
	outcome    TEXT, -- null while it is under way, or if nobody lived to record it
	code       TEXT,
	detail     TEXT,
	started_at INTEGER NOT NULL,
	ended_at   INTEGER,
	repeats    INTEGER NOT NULL DEFAULT 1,
	last_at    INTEGER,
	first_send INTEGER CHECK (first_send = 1), -- set on the first send of a payment, and on nothing else
	PRIMARY KEY (client_id, subject_id, n)
) STRICT, WITHOUT ROWID;

-- No two payments of a client are sent under one reference.
CREATE UNIQUE INDEX attempts_reference ON attempts (client_id, connection, reference) WHERE first_send = 1;

CREATE TABLE events (
	client_id          BLOB    NOT NULL,
	sequence           INTEGER NOT NULL CHECK (sequence > 0),
	kind               TEXT    NOT NULL,
	subject_id         BLOB    NOT NULL,
	created_at         INTEGER NOT NULL,
	status             TEXT    NOT NULL,
	expires_at         INTEGER NOT NULL,
	provider_reference TEXT,
	failure_reason     TEXT,
	failure_code       TEXT,
	failure_message    TEXT,
	failure_retryable  INTEGER,
	resolution         TEXT    NOT NULL,
	checked_at         INTEGER,
	next_check_at      INTEGER,
	calls              INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (client_id, sequence)
) STRICT, WITHOUT ROWID;

-- Exact counts, moved in the commit that moves what they count. Widths:
-- 0 all, 1 month, 2 day, 3 hour.
CREATE TABLE counters (
	client_id BLOB    NOT NULL,
	noun      TEXT    NOT NULL, -- payment (a method, b status), transaction (a type, b currency)
	width     INTEGER NOT NULL,
	bucket    INTEGER NOT NULL,
	a         TEXT    NOT NULL,
	b         TEXT    NOT NULL,
	n         INTEGER NOT NULL CHECK (n >= 0),
	PRIMARY KEY (client_id, noun, width, bucket, a, b)
) STRICT, WITHOUT ROWID;

CREATE TABLE wallets (
	client_id     BLOB    NOT NULL,
	id            BLOB    NOT NULL,
	currency      TEXT    NOT NULL,
	balance       INTEGER NOT NULL DEFAULT 0,
	reserved      INTEGER NOT NULL DEFAULT 0,
	last_sequence INTEGER NOT NULL DEFAULT 0,
	updated_at    INTEGER NOT NULL,
	UNIQUE (client_id, id),
	UNIQUE (client_id, currency),
	CHECK (reserved >= 0 AND balance >= reserved AND balance <= 1000000000000000000)
) STRICT;

-- The lines of wallets: the statement that clients read. Append only.
CREATE TABLE transactions (
	client_id          BLOB    NOT NULL,
	id                 BLOB    NOT NULL,
	wallet_id          BLOB    NOT NULL,
	sequence           INTEGER NOT NULL CHECK (sequence > 0),
	type               TEXT    NOT NULL,
	direction          TEXT    NOT NULL CHECK (direction IN ('credit', 'debit')),
	amount             INTEGER NOT NULL CHECK (amount > 0),
	currency           TEXT    NOT NULL,
	balance_after      INTEGER NOT NULL CHECK (balance_after >= 0),
	payment_id         BLOB,
	payout_id          BLOB,
	reference          TEXT,
	provider_reference TEXT,
	created_at         INTEGER NOT NULL,
	money_in           INTEGER,
	UNIQUE (client_id, id),
	UNIQUE (client_id, wallet_id, sequence),
	UNIQUE (client_id, payment_id, money_in), -- one credit per payment, late or not
	FOREIGN KEY (client_id, wallet_id) REFERENCES wallets (client_id, id),
	FOREIGN KEY (client_id, payment_id) REFERENCES payments (client_id, id),
	CHECK ((type = 'collection' OR type = 'late_collection') = (money_in IS NOT NULL)),
	CHECK (money_in IS NULL OR (money_in = 1 AND payment_id IS NOT NULL AND direction = 'credit'))
) STRICT;

CREATE INDEX transactions_reference ON transactions (client_id, reference) WHERE reference IS NOT NULL;

-- The other sides of entries: every posting that is not a wallet's line. An
-- entry is its transaction and the postings under the same id. Append only.
CREATE TABLE postings (
	client_id  BLOB    NOT NULL,
	entry_id   BLOB    NOT NULL,
	account    TEXT    NOT NULL CHECK (account = 'operator' OR account = 'suspense' OR account = 'receivable'),
	connection TEXT    NOT NULL,
	currency   TEXT    NOT NULL,
	amount     INTEGER NOT NULL CHECK (amount <> 0),
	kind       TEXT    NOT NULL,
	payment_id BLOB,
	created_at INTEGER NOT NULL,
	suspended  INTEGER CHECK (suspended = 1), -- set on the suspense line of a suspense entry
	PRIMARY KEY (client_id, entry_id, account, connection),
	UNIQUE (client_id, payment_id, suspended)
) STRICT;

-- The attention list: what a person has to look at.
CREATE TABLE cases (
	client_id  BLOB    NOT NULL,
	id         BLOB    NOT NULL,
	subject_id BLOB    NOT NULL,
	kind       TEXT    NOT NULL,
	detail     TEXT    NOT NULL,
	opened_at  INTEGER NOT NULL,
	closed_at  INTEGER,
	closed_by  TEXT,
	PRIMARY KEY (client_id, id),
	UNIQUE (client_id, subject_id, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX cases_open ON cases (opened_at) WHERE closed_at IS NULL;

-- Who did what: every act of a person, every money decision. Append only.
CREATE TABLE audit (
	client_id  BLOB    NOT NULL,
	sequence   INTEGER NOT NULL CHECK (sequence > 0),
	at         INTEGER NOT NULL,
	actor      TEXT    NOT NULL,
	action     TEXT    NOT NULL,
	subject_id BLOB,
	detail     TEXT    NOT NULL,
	PRIMARY KEY (client_id, sequence)
) STRICT, WITHOUT ROWID;

-- The seal on the audit rows, built behind the commit: each hash covers its
-- row and the hash before it.
CREATE TABLE audit_chain (
	client_id BLOB    NOT NULL,
	sequence  INTEGER NOT NULL,
	hash      BLOB    NOT NULL,
	PRIMARY KEY (client_id, sequence)
) STRICT, WITHOUT ROWID;
