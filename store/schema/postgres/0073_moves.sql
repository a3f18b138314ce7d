-- rolling
-- A comparison with NULL is not true: a row that had ended could be made pending again
-- by a statement that took its previous status away.
DROP TRIGGER payments_move ON payments;
CREATE TRIGGER payments_move BEFORE UPDATE OF status ON payments FOR EACH ROW
WHEN (OLD.status <> NEW.status AND NEW.previous_status IS DISTINCT FROM OLD.status)
EXECUTE FUNCTION till_refuse('previous_status must be the status it leaves');
DROP TRIGGER payouts_move ON payouts;
CREATE TRIGGER payouts_move BEFORE UPDATE OF status ON payouts FOR EACH ROW
WHEN (OLD.status <> NEW.status AND NEW.previous_status IS DISTINCT FROM OLD.status)
EXECUTE FUNCTION till_refuse('previous_status must be the status it leaves');
