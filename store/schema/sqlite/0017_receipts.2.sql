-- A second belt: a receipt is written once, and never changed. The constraints of
-- the common file hold without it.
DROP TRIGGER payments_fixed;
CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.approval_window <> NEW.approval_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
BEGIN SELECT RAISE(ABORT, 'payments: a fixed column changed'); END;

DROP TRIGGER payouts_fixed;
CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS NOT NEW.country OR OLD.reference IS NOT NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.send_window <> NEW.send_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
BEGIN SELECT RAISE(ABORT, 'payouts: a fixed column changed'); END;
