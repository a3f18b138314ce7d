-- rolling
-- When a person's data was taken out of a row. It happens once, after the end, and with it
-- alone the phone, the document and the body's hash change.
ALTER TABLE payments ADD COLUMN erased_at INTEGER;
ALTER TABLE payouts ADD COLUMN erased_at INTEGER;

DROP TRIGGER payments_fixed;
CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.approval_window <> NEW.approval_window OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
	OR (OLD.phone <> NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version
		OR OLD.erased_at IS NOT NEW.erased_at)
	AND NOT (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND OLD.final_event IS NOT NULL AND substr(NEW.phone, 1, 1) = '~' AND NEW.body_version > OLD.body_version)
BEGIN SELECT RAISE(ABORT, 'payments: a fixed column changed'); END;

DROP TRIGGER payouts_fixed;
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
