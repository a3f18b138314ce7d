-- rolling
-- payouts_issued has taken its place, as with 0084.
DROP INDEX payouts_receipt;
