-- Postings of payouts, fees and adjustments.
ALTER TABLE postings DROP CONSTRAINT postings_account_check, ADD COLUMN payout_id BYTEA,
	ADD CONSTRAINT postings_account_check CHECK (account = 'operator' OR account = 'suspense' OR account = 'receivable' OR account = 'fees' OR account = 'adjustments');

-- A new payout is pending, without a look at the table of moves; and one index
-- of a table begins with the client (see 0002).
ALTER TABLE payouts ALTER previous_status DROP DEFAULT, ALTER previous_status DROP NOT NULL,
	ADD CHECK (previous_status IS NOT NULL OR status = 'pending');
DROP INDEX payouts_key;
ALTER TABLE payouts ADD CONSTRAINT payouts_key UNIQUE (idempotency_key, client_id);
DROP INDEX payouts_reference;
CREATE INDEX payouts_reference ON payouts (reference, client_id) WHERE reference IS NOT NULL;
DROP INDEX payouts_receipt;
CREATE UNIQUE INDEX payouts_receipt ON payouts (provider_reference, client_id, connection) WHERE provider_reference IS NOT NULL;
DROP INDEX transactions_payout;
CREATE INDEX transactions_payout ON transactions (payout_id, client_id) WHERE payout_id IS NOT NULL;

-- A second belt. The constraints of the common file hold without these.
CREATE TRIGGER payments_fee BEFORE UPDATE ON payments FOR EACH ROW
WHEN (OLD.fee <> NEW.fee)
EXECUTE FUNCTION till_refuse('a fixed column changed');

CREATE TRIGGER payouts_move BEFORE UPDATE OF status ON payouts FOR EACH ROW
WHEN (OLD.status <> NEW.status AND NEW.previous_status <> OLD.status)
EXECUTE FUNCTION till_refuse('previous_status must be the status it leaves');

CREATE TRIGGER payouts_fixed BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.fee <> NEW.fee
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.send_window <> NEW.send_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at)
EXECUTE FUNCTION till_refuse('a fixed column changed');

CREATE TRIGGER payouts_keep BEFORE DELETE ON payouts FOR EACH ROW EXECUTE FUNCTION till_refuse('rows are kept');
CREATE TRIGGER facts_keep BEFORE UPDATE OR DELETE ON facts FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
CREATE TRIGGER adjustments_keep BEFORE UPDATE OR DELETE ON adjustments FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
