-- Payouts, fees, adjustments, what clients owe, and what acts rest on.

-- Every legal change of a payout's status, and no other.
CREATE TABLE payout_moves (
	from_status TEXT NOT NULL,
	to_status   TEXT NOT NULL,
	PRIMARY KEY (from_status, to_status)
);

INSERT INTO payout_moves (from_status, to_status) VALUES
	('', 'pending'),
	('pending', 'processing'), ('pending', 'success'), ('pending', 'failed'), ('pending', 'cancelled'),
	('processing', 'success'), ('processing', 'failed');

CREATE TABLE payouts (
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
	fee                  BIGINT NOT NULL CHECK (fee >= 0 AND fee <= amount),
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
	expires_at           BIGINT NOT NULL, -- after it no send starts
	send_window          BIGINT NOT NULL,
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
	FOREIGN KEY (previous_status, status) REFERENCES payout_moves (from_status, to_status),
	CHECK (updated_at >= created_at),
	CHECK ((status = 'success' OR status = 'failed' OR status = 'cancelled') = (final_event IS NOT NULL)),
	CHECK (status <> 'processing' OR processing_event IS NOT NULL),
	CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
	CHECK (late_event IS NULL OR status = 'failed')
);

CREATE UNIQUE INDEX payouts_key ON payouts (client_id, idempotency_key);
CREATE INDEX payouts_kind ON payouts (method, status, client_id, id);
CREATE INDEX payouts_reference ON payouts (client_id, reference) WHERE reference IS NOT NULL;
CREATE UNIQUE INDEX payouts_receipt ON payouts (client_id, provider_reference, connection) WHERE provider_reference IS NOT NULL;

-- What becomes of a payment or payout once at most, whatever line of a
-- statement it makes or does not make: money out (in time or late), money
-- taken back, a fee. Append only.
CREATE TABLE facts (
	client_id  BYTEA    NOT NULL,
	subject_id BYTEA    NOT NULL,
	fact       TEXT    NOT NULL CHECK (fact = 'money_out' OR fact = 'reversal' OR fact = 'fee'),
	entry_id   BYTEA    NOT NULL,
	PRIMARY KEY (client_id, subject_id, fact)
);

-- Fees are fixed when a payment or payout is made.
ALTER TABLE payments ADD COLUMN fee BIGINT NOT NULL DEFAULT 0 CHECK (fee >= 0 AND fee <= amount);
ALTER TABLE payments ADD COLUMN reversed_event BIGINT CHECK (reversed_event IS NULL OR status = 'success' OR late_event IS NOT NULL);

CREATE TABLE client_fees (
	client_id    BYTEA    NOT NULL,
	kind         TEXT    NOT NULL CHECK (kind = 'payment' OR kind = 'payout'),
	method       TEXT    NOT NULL,
	currency     TEXT    NOT NULL,
	flat         BIGINT NOT NULL CHECK (flat >= 0),
	basis_points BIGINT NOT NULL CHECK (basis_points >= 0 AND basis_points <= 10000),
	PRIMARY KEY (client_id, kind, method, currency)
);

-- What a client owes us in the wallet's currency: repaid first by what comes
-- in. It is the running sum of the receivable account's postings.
ALTER TABLE wallets ADD COLUMN owed BIGINT NOT NULL DEFAULT 0 CHECK (owed >= 0);

-- A person's corrections. The id is the person's, so that a repeated command
-- adjusts once. Append only.
CREATE TABLE adjustments (
	client_id  BYTEA    NOT NULL,
	id         BYTEA    NOT NULL,
	entry_id   BYTEA    NOT NULL,
	currency   TEXT    NOT NULL,
	amount     BIGINT NOT NULL CHECK (amount <> 0), -- a credit if positive
	reason     TEXT    NOT NULL,
	actor      TEXT    NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (client_id, id)
);

-- Pages of a kind that is rare among many others (see 0002).
CREATE INDEX transactions_kind ON transactions (type, currency, client_id, id);
CREATE INDEX transactions_payout ON transactions (client_id, payout_id) WHERE payout_id IS NOT NULL;

-- What a case ended with, and what an act rests on: the SHA-256 of its evidence.
ALTER TABLE cases ADD COLUMN reason TEXT;
ALTER TABLE cases ADD COLUMN evidence BYTEA;
ALTER TABLE audit ADD COLUMN cause TEXT;
ALTER TABLE audit ADD COLUMN evidence BYTEA;

-- Steps of payouts too, with what an operator's answers and callbacks leave
-- for the next call.
CREATE TABLE steps_5 (
	client_id       BYTEA    NOT NULL,
	subject_id      BYTEA    NOT NULL,
	kind            TEXT    NOT NULL CHECK (kind = 'payment' OR kind = 'payout'),
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
	lane            TEXT    NOT NULL DEFAULT 'unknown',
	handle          TEXT,                       -- the operator's own id of the request
	mail            BYTEA,                       -- the latest callback's body, where an adapter wants it
	mailed_at       BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (client_id, subject_id)
);

INSERT INTO steps_5 (client_id, subject_id, kind, due_at, lease_until, lease_version, wake_seq, calls, checked_at, sends,
	send_started_at, send_deadline, acked, absent, slow, late_from, late_reads, lane)
SELECT client_id, subject_id, kind, due_at, lease_until, lease_version, wake_seq, calls, checked_at, sends,
	send_started_at, send_deadline, acked, absent, slow, late_from, late_reads, lane FROM steps;
DROP TABLE steps;
ALTER TABLE steps_5 RENAME TO steps;
CREATE INDEX steps_lane ON steps (lane, due_at);
