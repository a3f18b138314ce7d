-- rolling
-- A refund is a payout that names the payment it gives back. Older programs make none, and
-- take none on before the level allows it.
ALTER TABLE payouts ADD COLUMN payment_id BYTEA, ADD COLUMN road TEXT NOT NULL DEFAULT 'transfer', ADD COLUMN reason TEXT;
ALTER TABLE payouts ADD CONSTRAINT payouts_road CHECK (road = 'transfer' OR road = 'refund') NOT VALID;

CREATE TRIGGER payouts_refund BEFORE UPDATE ON payouts FOR EACH ROW
WHEN (OLD.payment_id IS DISTINCT FROM NEW.payment_id OR OLD.road <> NEW.road OR OLD.reason IS DISTINCT FROM NEW.reason)
EXECUTE FUNCTION till_refuse('a fixed column changed');

-- What went back of a payment, and what is on its way. A payment without refunds has no row.
-- Money that an operator paid after it had said that a refund failed is late: it is recorded,
-- whatever the sum.
CREATE TABLE refund_sums (
	client_id  BYTEA  NOT NULL,
	payment_id BYTEA  NOT NULL,
	amount     BIGINT NOT NULL CHECK (amount > 0), -- the payment's
	refunding  BIGINT NOT NULL CHECK (refunding >= 0),
	refunded   BIGINT NOT NULL CHECK (refunded >= 0),
	late       BIGINT NOT NULL CHECK (late >= 0),
	PRIMARY KEY (client_id, payment_id),
	CHECK (refunding + refunded <= amount)
);

-- Fees of refunds.
ALTER TABLE client_fees DROP CONSTRAINT client_fees_kind_check;
ALTER TABLE client_fees ADD CONSTRAINT client_fees_kind_check CHECK (kind = 'payment' OR kind = 'payout' OR kind = 'refund');
