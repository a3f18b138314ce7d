-- rolling
-- When a person's data was taken out of a row. It happens once, after the end, and with it
-- alone the phone, the document and the body's hash change.
ALTER TABLE payments ADD COLUMN erased_at BIGINT;
ALTER TABLE payouts ADD COLUMN erased_at BIGINT;

DROP TRIGGER payments_fixed ON payments;
CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.approval_window <> NEW.approval_window OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
	OR (OLD.phone <> NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version
		OR OLD.erased_at IS DISTINCT FROM NEW.erased_at)
	AND NOT (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND OLD.final_event IS NOT NULL AND substr(NEW.phone, 1, 1) = '~' AND NEW.body_version > OLD.body_version))
EXECUTE FUNCTION till_refuse('a fixed column changed');

DROP TRIGGER payouts_fixed ON payouts;
CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.send_window <> NEW.send_window OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at OR OLD.provider_reference <> coalesce(NEW.provider_reference, '')
	OR (OLD.phone <> NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version
		OR OLD.erased_at IS DISTINCT FROM NEW.erased_at)
	AND NOT (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND OLD.final_event IS NOT NULL AND substr(NEW.phone, 1, 1) = '~' AND NEW.body_version > OLD.body_version))
EXECUTE FUNCTION till_refuse('a fixed column changed');
