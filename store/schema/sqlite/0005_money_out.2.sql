-- Postings of payouts, fees and adjustments: SQLite changes no constraint of a
-- table that exists.
CREATE TABLE postings_5 (
	client_id  BLOB    NOT NULL,
	entry_id   BLOB    NOT NULL,
	account    TEXT    NOT NULL CHECK (account = 'operator' OR account = 'suspense' OR account = 'receivable' OR account = 'fees' OR account = 'adjustments'),
	connection TEXT    NOT NULL,
	currency   TEXT    NOT NULL,
	amount     INTEGER NOT NULL CHECK (amount <> 0),
	kind       TEXT    NOT NULL,
	payment_id BLOB,
	created_at INTEGER NOT NULL,
	suspended  INTEGER CHECK (suspended = 1), -- set on the suspense line of a suspense entry
	payout_id  BLOB,
	PRIMARY KEY (client_id, entry_id, account, connection),
	UNIQUE (client_id, payment_id, suspended)
) STRICT;
INSERT INTO postings_5 (client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at, suspended)
SELECT client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at, suspended FROM postings;
DROP TABLE postings;
ALTER TABLE postings_5 RENAME TO postings;
CREATE TRIGGER postings_update BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings: append only'); END;
CREATE TRIGGER postings_delete BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings: append only'); END;

-- A second belt. The constraints of the common file hold without these.
CREATE TRIGGER payments_fee BEFORE UPDATE ON payments
WHEN OLD.fee <> NEW.fee
BEGIN SELECT RAISE(ABORT, 'payments: a fixed column changed'); END;

CREATE TRIGGER payouts_move BEFORE UPDATE OF status ON payouts
WHEN OLD.status <> NEW.status AND NEW.previous_status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'payouts: previous_status must be the status it leaves'); END;

CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.send_window <> NEW.send_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at
BEGIN SELECT RAISE(ABORT, 'payouts: a fixed column changed'); END;

CREATE TRIGGER payouts_keep BEFORE DELETE ON payouts
BEGIN SELECT RAISE(ABORT, 'payouts: rows are kept'); END;

CREATE TRIGGER facts_update BEFORE UPDATE ON facts
BEGIN SELECT RAISE(ABORT, 'facts: append only'); END;
CREATE TRIGGER facts_delete BEFORE DELETE ON facts
BEGIN SELECT RAISE(ABORT, 'facts: append only'); END;
CREATE TRIGGER adjustments_update BEFORE UPDATE ON adjustments
BEGIN SELECT RAISE(ABORT, 'adjustments: append only'); END;
CREATE TRIGGER adjustments_delete BEFORE DELETE ON adjustments
BEGIN SELECT RAISE(ABORT, 'adjustments: append only'); END;
