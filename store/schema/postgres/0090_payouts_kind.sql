-- rolling
-- payouts_plain_kind and payouts_refund_kind have taken its place. In a commit of its own, as
-- with 0084.
DROP INDEX payouts_kind;
