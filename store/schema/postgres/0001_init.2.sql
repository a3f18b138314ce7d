-- A second belt. The constraints of the common file hold without these.

CREATE FUNCTION till_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = '23514';
END $$;

CREATE TRIGGER payments_move BEFORE UPDATE OF status ON payments FOR EACH ROW
WHEN (OLD.status <> NEW.status AND NEW.previous_status <> OLD.status)
EXECUTE FUNCTION till_refuse('previous_status must be the status it leaves');

CREATE TRIGGER payments_fixed BEFORE UPDATE ON payments FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency
	OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.created_at <> NEW.created_at OR OLD.phone <> NEW.phone
	OR OLD.method <> NEW.method OR OLD.country IS DISTINCT FROM NEW.country OR OLD.reference IS DISTINCT FROM NEW.reference
	OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version OR OLD.approval_window <> NEW.approval_window
	OR OLD.document <> NEW.document OR OLD.connection <> NEW.connection OR OLD.fingerprint <> NEW.fingerprint
	OR NEW.updated_at < OLD.updated_at)
EXECUTE FUNCTION till_refuse('a fixed column changed');

CREATE TRIGGER payments_keep BEFORE DELETE ON payments FOR EACH ROW EXECUTE FUNCTION till_refuse('rows are kept');
CREATE TRIGGER transactions_keep BEFORE UPDATE OR DELETE ON transactions FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
CREATE TRIGGER postings_keep BEFORE UPDATE OR DELETE ON postings FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
CREATE TRIGGER events_keep BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
CREATE TRIGGER audit_keep BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION till_refuse('append only');
