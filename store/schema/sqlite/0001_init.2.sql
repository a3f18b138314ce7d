-- A second belt. The constraints of the common file hold without these.

CREATE TRIGGER payments_move BEFORE UPDATE OF status ON payments
WHEN OLD.status <> NEW.status AND NEW.previous_status <> OLD.status
BEGIN SELECT RAISE(ABORT, 'payments: previous_status must be the status it leaves'); END;

CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.approval_window <> NEW.approval_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at
BEGIN SELECT RAISE(ABORT, 'payments: a fixed column changed'); END;

CREATE TRIGGER payments_keep BEFORE DELETE ON payments
BEGIN SELECT RAISE(ABORT, 'payments: rows are kept'); END;

CREATE TRIGGER transactions_update BEFORE UPDATE ON transactions
BEGIN SELECT RAISE(ABORT, 'transactions: append only'); END;
CREATE TRIGGER transactions_delete BEFORE DELETE ON transactions
BEGIN SELECT RAISE(ABORT, 'transactions: append only'); END;

CREATE TRIGGER postings_update BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings: append only'); END;
CREATE TRIGGER postings_delete BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings: append only'); END;

CREATE TRIGGER events_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events: append only'); END;
CREATE TRIGGER events_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events: append only'); END;

CREATE TRIGGER audit_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit: append only'); END;
CREATE TRIGGER audit_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit: append only'); END;
