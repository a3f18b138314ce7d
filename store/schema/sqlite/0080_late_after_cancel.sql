-- rolling
-- A payout that was cancelled may turn out to be paid: that is late money, as after a failure.
-- SQLite changes no constraint of a table that exists.
CREATE TABLE payouts_new (
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
	fee                  INTEGER NOT NULL CHECK (fee >= 0 AND fee <= amount),
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
	expires_at           INTEGER NOT NULL, -- after it no send starts
	send_window          INTEGER NOT NULL,
	connection           TEXT    NOT NULL,
	fingerprint          TEXT    NOT NULL,
	attention            INTEGER NOT NULL DEFAULT 0 CHECK (attention IN (0, 1)),
	checked_at           INTEGER,          -- copied from the step when it ends
	calls                INTEGER NOT NULL DEFAULT 0,
	pending_event        INTEGER NOT NULL, -- the sequences of its events
	processing_event     INTEGER,
	final_event          INTEGER,
	late_event           INTEGER,
	erased_at            INTEGER,
	callbacks            INTEGER NOT NULL DEFAULT 0,
	callback_at          INTEGER NOT NULL DEFAULT 0,
	last_callback_at     INTEGER NOT NULL DEFAULT 0,
	UNIQUE (client_id, id),
	FOREIGN KEY (previous_status, status) REFERENCES payout_moves (from_status, to_status),
	CHECK (updated_at >= created_at),
	CHECK ((status = 'success' OR status = 'failed' OR status = 'cancelled') = (final_event IS NOT NULL)),
	CHECK (status <> 'processing' OR processing_event IS NOT NULL),
	CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
	CHECK (late_event IS NULL OR status = 'failed' OR status = 'cancelled')
) STRICT;
INSERT INTO payouts_new (
	client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version, status, previous_status, method, country, amount, fee, currency, phone,
	reference, document, provider_reference, failure_reason, failure_code, failure_message, failure_retryable, created_at, updated_at, expires_at,
	send_window, connection, fingerprint, attention, checked_at, calls, pending_event, processing_event, final_event, late_event, erased_at, callbacks,
	callback_at, last_callback_at)
SELECT
	client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version, status, previous_status, method, country, amount, fee, currency, phone,
	reference, document, provider_reference, failure_reason, failure_code, failure_message, failure_retryable, created_at, updated_at, expires_at,
	send_window, connection, fingerprint, attention, checked_at, calls, pending_event, processing_event, final_event, late_event, erased_at, callbacks,
	callback_at, last_callback_at
FROM payouts ORDER BY rowid;
DROP TABLE payouts;
ALTER TABLE payouts_new RENAME TO payouts;

CREATE UNIQUE INDEX payouts_key ON payouts (client_id, idempotency_key);
CREATE INDEX payouts_kind ON payouts (method, status, client_id, id);
CREATE INDEX payouts_reference ON payouts (client_id, reference) WHERE reference IS NOT NULL;
CREATE UNIQUE INDEX payouts_receipt ON payouts (client_id, provider_reference, connection) WHERE provider_reference IS NOT NULL;

CREATE TRIGGER payouts_move BEFORE UPDATE OF status ON payouts
WHEN OLD.status <> NEW.status AND NEW.previous_status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'payouts: previous_status must be the status it leaves'); END;

CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.send_window <> NEW.send_window OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
	OR (OLD.phone <> NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version
		OR OLD.erased_at IS NOT NEW.erased_at)
	AND NOT (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND OLD.final_event IS NOT NULL AND substr(NEW.phone, 1, 1) = '~' AND NEW.body_version > OLD.body_version)
BEGIN SELECT RAISE(ABORT, 'payouts: a fixed column changed'); END;

CREATE TRIGGER payouts_keep BEFORE DELETE ON payouts
BEGIN SELECT RAISE(ABORT, 'payouts: rows are kept'); END;
