-- The whole first schema. Every table is led by client_id and every unique
-- key contains it, so that a distributed engine can shard by it. Ids are 16
-- bytes, times are microseconds UTC, money is minor units.
--
-- What must never happen is refused here, whatever the program believes.
-- (Checks say a = x OR a = y: for IN with three values SQLite builds a table
-- at every insert.)

CREATE TABLE installation (
	one          BIGINT PRIMARY KEY CHECK (one = 1),
	log_id       BYTEA    NOT NULL, -- changes if a restore lost history
	secret_check BYTEA    NOT NULL, -- proves that an instance holds our secret
	created_at   BIGINT NOT NULL
);

-- Where payments are sent: the account behind each name, so that a changed
-- configuration is noticed.
CREATE TABLE connections (
	name        TEXT PRIMARY KEY,
	fingerprint TEXT NOT NULL
);

CREATE TABLE clients (
	client_id  BYTEA    NOT NULL PRIMARY KEY,
	name       TEXT    NOT NULL,
	mode       TEXT    NOT NULL CHECK (mode IN ('test', 'live')),
	suspended  BIGINT NOT NULL DEFAULT 0 CHECK (suspended IN (0, 1)),
	created_at BIGINT NOT NULL
);

-- The one contended row of a client: whoever holds it gives out times and
-- sequences, so their order is the order of commits.
CREATE TABLE client_heads (
	client_id  BYTEA    NOT NULL PRIMARY KEY,
	last_time  BIGINT NOT NULL,
	last_event BIGINT NOT NULL,
	last_audit BIGINT NOT NULL
);

CREATE TABLE client_methods (
	client_id BYTEA NOT NULL,
	method    TEXT NOT NULL,
	PRIMARY KEY (client_id, method)
);

CREATE TABLE api_keys (
	client_id    BYTEA    NOT NULL,
	key_id       TEXT    NOT NULL,
	name         TEXT,
	scopes       TEXT    NOT NULL, -- separated by spaces
	secret_hash  BYTEA    NOT NULL CHECK (length(secret_hash) = 32),
	created_at   BIGINT NOT NULL,
	expires_at   BIGINT,
	revoked_at   BIGINT,
	last_used_at BIGINT,
	exposed_at   BIGINT,
	PRIMARY KEY (client_id, key_id)
);

-- Global look-up: whose key is this?
CREATE TABLE key_clients (
	key_id    TEXT NOT NULL PRIMARY KEY,
	client_id BYTEA NOT NULL
);

-- Every legal change of a payment's status, and no other.
CREATE TABLE payment_moves (
	from_status TEXT NOT NULL,
	to_status   TEXT NOT NULL,
	PRIMARY KEY (from_status, to_status)
);

INSERT INTO payment_moves (from_status, to_status) VALUES
	('', 'pending'),
	('pending', 'processing'), ('pending', 'success'), ('pending', 'failed'), ('pending', 'expired'),
	('processing', 'success'), ('processing', 'failed'), ('processing', 'expired');

CREATE TABLE payments (
	client_id            BYTEA    NOT NULL,
	id                   BYTEA    NOT NULL, -- its order is the order of created_at
	idempotency_key      BYTEA    NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,             -- where it was not spelled in lower case
	body_hash            BYTEA    NOT NULL CHECK (length(body_hash) = 32),
	body_version         BIGINT NOT NULL, -- the list of members that body_hash covers
	status               TEXT    NOT NULL,
	previous_status      TEXT    NOT NULL DEFAULT '',
	method               TEXT    NOT NULL,
	country              TEXT,
	amount               BIGINT NOT NULL CHECK (amount > 0),
	currency             TEXT    NOT NULL,
	phone                TEXT    NOT NULL,
	reference            TEXT,
	document             BYTEA    NOT NULL, -- what is echoed as sent
	provider_reference   TEXT,
	failure_reason       TEXT,
	failure_code         TEXT,
	failure_message      TEXT,
	failure_retryable    BIGINT,
	created_at           BIGINT NOT NULL,
	updated_at           BIGINT NOT NULL,
	expires_at           BIGINT NOT NULL,
	approval_window      BIGINT NOT NULL,
	connection           TEXT    NOT NULL,
	fingerprint          TEXT    NOT NULL,
	attention            BIGINT NOT NULL DEFAULT 0 CHECK (attention IN (0, 1)),
	checked_at           BIGINT,          -- copied from the step when it ends
	calls                BIGINT NOT NULL DEFAULT 0,
	pending_event        BIGINT NOT NULL, -- the sequences of its events
	processing_event     BIGINT,
	final_event          BIGINT,
	late_event           BIGINT,
	UNIQUE (client_id, id),
	UNIQUE (client_id, idempotency_key),
	FOREIGN KEY (previous_status, status) REFERENCES payment_moves (from_status, to_status),
	CHECK (updated_at >= created_at),
	CHECK ((status = 'success' OR status = 'failed' OR status = 'expired') = (final_event IS NOT NULL)),
	CHECK (status <> 'processing' OR processing_event IS NOT NULL),
	CHECK ((status = 'failed' OR status = 'expired') = (failure_reason IS NOT NULL)),
	CHECK (late_event IS NULL OR status = 'failed' OR status = 'expired')
);

CREATE INDEX payments_reference ON payments (client_id, reference) WHERE reference IS NOT NULL;
CREATE UNIQUE INDEX payments_receipt ON payments (client_id, provider_reference, connection) WHERE provider_reference IS NOT NULL;

-- What is due, and nothing else: a row exists while a call to an operator is
-- scheduled, and carries what the calls so far have shown.
CREATE TABLE steps (
	client_id       BYTEA    NOT NULL,
	subject_id      BYTEA    NOT NULL,
	kind            TEXT    NOT NULL CHECK (kind IN ('payment')),
	due_at          BIGINT NOT NULL,
	lease_until     BIGINT NOT NULL DEFAULT 0,
	lease_version   BIGINT NOT NULL DEFAULT 0,
	wake_seq        BIGINT NOT NULL DEFAULT 0,
	calls           BIGINT NOT NULL DEFAULT 0, -- calls that have ended
	checked_at      BIGINT NOT NULL DEFAULT 0, -- when the last one ended
	sends           BIGINT NOT NULL DEFAULT 0, -- sends that may have begun
	send_started_at BIGINT NOT NULL DEFAULT 0,
	send_deadline   BIGINT NOT NULL DEFAULT 0, -- after it no byte of the latest send leaves us
	acked           BIGINT NOT NULL DEFAULT 0, -- the operator was seen to hold it
	absent          BIGINT NOT NULL DEFAULT 0, -- agreeing reads that prove it absent
	slow            BIGINT NOT NULL DEFAULT 0, -- how often the pace was halved
	late_from       BIGINT NOT NULL DEFAULT 0, -- when it ended other than in success
	late_reads      BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (client_id, subject_id)
);

CREATE INDEX steps_due ON steps (due_at);

-- Calls to operators. The first row of a payment is written before the first
-- byte is sent; equal answers in a row are one row.
CREATE TABLE attempts (
	client_id  BYTEA    NOT NULL,
	subject_id BYTEA    NOT NULL,
	n          BIGINT NOT NULL CHECK (n > 0),
	kind       TEXT    NOT NULL CHECK (kind = 'submit' OR kind = 'check' OR kind = 'resolve'),
	connection TEXT    NOT NULL,
	reference  BYTEA    NOT NULL CHECK (length(reference) = 16),
	outcome    TEXT, -- null while it is under way, or if nobody lived to record it
	code       TEXT,
	detail     TEXT,
	started_at BIGINT NOT NULL,
	ended_at   BIGINT,
	repeats    BIGINT NOT NULL DEFAULT 1,
	last_at    BIGINT,
	first_send BIGINT CHECK (first_send = 1), -- set on the first send of a payment, and on nothing else
	PRIMARY KEY (client_id, subject_id, n)
);

-- No two payments of a client are sent under one reference.
CREATE UNIQUE INDEX attempts_reference ON attempts (client_id, connection, reference) WHERE first_send = 1;

CREATE TABLE events (
	client_id          BYTEA    NOT NULL,
	sequence           BIGINT NOT NULL CHECK (sequence > 0),
	kind               TEXT    NOT NULL,
	subject_id         BYTEA    NOT NULL,
	created_at         BIGINT NOT NULL,
	status             TEXT    NOT NULL,
	expires_at         BIGINT NOT NULL,
	provider_reference TEXT,
	failure_reason     TEXT,
	failure_code       TEXT,
	failure_message    TEXT,
	failure_retryable  BIGINT,
	resolution         TEXT    NOT NULL,
	checked_at         BIGINT,
	next_check_at      BIGINT,
	calls              BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (client_id, sequence)
);

-- Exact counts, moved in the commit that moves what they count. Widths:
-- 0 all, 1 month, 2 day, 3 hour.
CREATE TABLE counters (
	client_id BYTEA    NOT NULL,
	noun      TEXT    NOT NULL, -- payment (a method, b status), transaction (a type, b currency)
	width     BIGINT NOT NULL,
	bucket    BIGINT NOT NULL,
	a         TEXT    NOT NULL,
	b         TEXT    NOT NULL,
	n         BIGINT NOT NULL CHECK (n >= 0),
	PRIMARY KEY (client_id, noun, width, bucket, a, b)
);

CREATE TABLE wallets (
	client_id     BYTEA    NOT NULL,
	id            BYTEA    NOT NULL,
	currency      TEXT    NOT NULL,
	balance       BIGINT NOT NULL DEFAULT 0,
	reserved      BIGINT NOT NULL DEFAULT 0,
	last_sequence BIGINT NOT NULL DEFAULT 0,
	updated_at    BIGINT NOT NULL,
	UNIQUE (client_id, id),
	UNIQUE (client_id, currency),
	CHECK (reserved >= 0 AND balance >= reserved AND balance <= 1000000000000000000)
);

-- The lines of wallets: the statement that clients read. Append only.
CREATE TABLE transactions (
	client_id          BYTEA    NOT NULL,
	id                 BYTEA    NOT NULL,
	wallet_id          BYTEA    NOT NULL,
	sequence           BIGINT NOT NULL CHECK (sequence > 0),
	type               TEXT    NOT NULL,
	direction          TEXT    NOT NULL CHECK (direction IN ('credit', 'debit')),
	amount             BIGINT NOT NULL CHECK (amount > 0),
	currency           TEXT    NOT NULL,
	balance_after      BIGINT NOT NULL CHECK (balance_after >= 0),
	payment_id         BYTEA,
	payout_id          BYTEA,
	reference          TEXT,
	provider_reference TEXT,
	created_at         BIGINT NOT NULL,
	money_in           BIGINT,
	UNIQUE (client_id, id),
	UNIQUE (client_id, wallet_id, sequence),
	UNIQUE (client_id, payment_id, money_in), -- one credit per payment, late or not
	FOREIGN KEY (client_id, wallet_id) REFERENCES wallets (client_id, id),
	FOREIGN KEY (client_id, payment_id) REFERENCES payments (client_id, id),
	CHECK ((type = 'collection' OR type = 'late_collection') = (money_in IS NOT NULL)),
	CHECK (money_in IS NULL OR (money_in = 1 AND payment_id IS NOT NULL AND direction = 'credit'))
);

CREATE INDEX transactions_reference ON transactions (client_id, reference) WHERE reference IS NOT NULL;

-- The other sides of entries: every posting that is not a wallet's line. An
-- entry is its transaction and the postings under the same id. Append only.
CREATE TABLE postings (
	client_id  BYTEA    NOT NULL,
	entry_id   BYTEA    NOT NULL,
	account    TEXT    NOT NULL CHECK (account = 'operator' OR account = 'suspense' OR account = 'receivable'),
	connection TEXT    NOT NULL,
	currency   TEXT    NOT NULL,
	amount     BIGINT NOT NULL CHECK (amount <> 0),
	kind       TEXT    NOT NULL,
	payment_id BYTEA,
	created_at BIGINT NOT NULL,
	suspended  BIGINT CHECK (suspended = 1), -- set on the suspense line of a suspense entry
	PRIMARY KEY (client_id, entry_id, account, connection),
	UNIQUE (client_id, payment_id, suspended)
);

-- The attention list: what a person has to look at.
CREATE TABLE cases (
	client_id  BYTEA    NOT NULL,
	id         BYTEA    NOT NULL,
	subject_id BYTEA    NOT NULL,
	kind       TEXT    NOT NULL,
	detail     TEXT    NOT NULL,
	opened_at  BIGINT NOT NULL,
	closed_at  BIGINT,
	closed_by  TEXT,
	PRIMARY KEY (client_id, id),
	UNIQUE (client_id, subject_id, kind)
);

CREATE INDEX cases_open ON cases (opened_at) WHERE closed_at IS NULL;

-- Who did what: every act of a person, every money decision. Append only.
CREATE TABLE audit (
	client_id  BYTEA    NOT NULL,
	sequence   BIGINT NOT NULL CHECK (sequence > 0),
	at         BIGINT NOT NULL,
	actor      TEXT    NOT NULL,
	action     TEXT    NOT NULL,
	subject_id BYTEA,
	detail     TEXT    NOT NULL,
	PRIMARY KEY (client_id, sequence)
);

-- The seal on the audit rows, built behind the commit: each hash covers its
-- row and the hash before it.
CREATE TABLE audit_chain (
	client_id BYTEA    NOT NULL,
	sequence  BIGINT NOT NULL,
	hash      BYTEA    NOT NULL,
	PRIMARY KEY (client_id, sequence)
);
