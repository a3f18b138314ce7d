-- rolling
-- A refund is a payout that names the payment it gives back. Older programs make none, and
-- take none on before the level allows it.
ALTER TABLE payouts ADD COLUMN payment_id BLOB;
ALTER TABLE payouts ADD COLUMN road TEXT NOT NULL DEFAULT 'transfer' CHECK (road = 'transfer' OR road = 'refund');
ALTER TABLE payouts ADD COLUMN reason TEXT;

CREATE TRIGGER payouts_refund BEFORE UPDATE ON payouts
WHEN OLD.payment_id IS NOT NEW.payment_id OR OLD.road <> NEW.road OR OLD.reason IS NOT NEW.reason
BEGIN SELECT RAISE(ABORT, 'payouts: a fixed column changed'); END;

-- What went back of a payment, and what is on its way. A payment without refunds has no row.
-- Money that an operator paid after it had said that a refund failed is late: it is recorded,
-- whatever the sum.
CREATE TABLE refund_sums (
	client_id  BLOB    NOT NULL,
	payment_id BLOB    NOT NULL,
	amount     INTEGER NOT NULL CHECK (amount > 0), -- the payment's
	refunding  INTEGER NOT NULL CHECK (refunding >= 0),
	refunded   INTEGER NOT NULL CHECK (refunded >= 0),
	late       INTEGER NOT NULL CHECK (late >= 0),
	PRIMARY KEY (client_id, payment_id),
	CHECK (refunding + refunded <= amount)
) STRICT, WITHOUT ROWID;

-- One refund of a payment is open at a time.
CREATE UNIQUE INDEX payouts_open_refund ON payouts (client_id, payment_id) WHERE payment_id IS NOT NULL AND final_event IS NULL;
CREATE INDEX payouts_of_payment ON payouts (client_id, payment_id, id) WHERE payment_id IS NOT NULL;

-- Lists of payouts and of refunds are as quick as if the other did not exist.
CREATE INDEX payouts_plain ON payouts (client_id, id) WHERE payment_id IS NULL;
CREATE INDEX payouts_refunds ON payouts (client_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX payouts_plain_kind ON payouts (method, status, client_id, id) WHERE payment_id IS NULL;
CREATE INDEX payouts_refund_kind ON payouts (method, status, client_id, id) WHERE payment_id IS NOT NULL;
DROP INDEX payouts_kind;

-- Fees of refunds. SQLite changes no constraint of a table that exists.
CREATE TABLE client_fees_new (
	client_id    BLOB    NOT NULL,
	kind         TEXT    NOT NULL CHECK (kind = 'payment' OR kind = 'payout' OR kind = 'refund'),
	method       TEXT    NOT NULL,
	currency     TEXT    NOT NULL,
	flat         INTEGER NOT NULL CHECK (flat >= 0),
	basis_points INTEGER NOT NULL CHECK (basis_points >= 0 AND basis_points <= 10000),
	PRIMARY KEY (client_id, kind, method, currency)
) STRICT, WITHOUT ROWID;
INSERT INTO client_fees_new (client_id, kind, method, currency, flat, basis_points)
SELECT client_id, kind, method, currency, flat, basis_points FROM client_fees;
DROP TABLE client_fees;
ALTER TABLE client_fees_new RENAME TO client_fees;
