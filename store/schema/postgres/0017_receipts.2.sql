-- A second belt: a receipt is written once, and never changed. The constraints of
-- the common file hold without it.
DROP TRIGGER payments_fixed ON payments;
CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.approval_window <> NEW.approval_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, ''))
EXECUTE FUNCTION till_refuse('a fixed column changed');

DROP TRIGGER payouts_fixed ON payouts;
CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.send_window <> NEW.send_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, ''))
EXECUTE FUNCTION till_refuse('a fixed column changed');
