-- rolling
-- A payout that was cancelled may turn out to be paid: that is late money, as after a failure.
ALTER TABLE payouts DROP CONSTRAINT payouts_check5;
ALTER TABLE payouts ADD CONSTRAINT payouts_late CHECK (late_event IS NULL OR status = 'failed' OR status = 'cancelled') NOT VALID;
