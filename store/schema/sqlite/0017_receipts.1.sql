-- Which payment, or payout, an operator's receipt belongs to, whoever's it is:
-- a receipt is the name of one movement of money on a connection. Written in the
-- commit that takes the receipt. It holds over all clients, so no client leads it.
CREATE TABLE operator_receipts (
	connection TEXT NOT NULL,
	receipt    TEXT NOT NULL,
	kind       TEXT NOT NULL CHECK (kind = 'payment' OR kind = 'payout'),
	client_id  BLOB NOT NULL,
	subject_id BLOB NOT NULL,
	PRIMARY KEY (connection, receipt, kind)
) STRICT, WITHOUT ROWID;

-- Of several that have one receipt, the first keeps it. Sorted, because a table
-- that grows at its end grows fast.
INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
SELECT connection, provider_reference, 'payment', client_id, id FROM (
	SELECT connection, provider_reference, client_id, id, row_number() OVER (PARTITION BY connection, provider_reference ORDER BY id) AS nth
	FROM payments WHERE provider_reference IS NOT NULL) AS p
WHERE nth = 1 ORDER BY connection, provider_reference;

INSERT INTO operator_receipts (connection, receipt, kind, client_id, subject_id)
SELECT connection, provider_reference, 'payout', client_id, id FROM (
	SELECT connection, provider_reference, client_id, id, row_number() OVER (PARTITION BY connection, provider_reference ORDER BY id) AS nth
	FROM payouts WHERE provider_reference IS NOT NULL) AS p
WHERE nth = 1 ORDER BY connection, provider_reference;

-- The others were credited, or paid, under a receipt that was another's: a person
-- has to look. They are sorted out once more: who would join a table that was
-- just filled might do it in a bad way.
INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at)
SELECT client_id, id, id, 'receipt_reused', 'its money moved under a receipt that another payment has, of whatever client', updated_at FROM (
	SELECT client_id, id, updated_at, row_number() OVER (PARTITION BY connection, provider_reference ORDER BY id) AS nth
	FROM payments WHERE provider_reference IS NOT NULL) AS p
WHERE nth > 1 ON CONFLICT DO NOTHING;

INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at)
SELECT client_id, id, id, 'receipt_reused', 'its money moved under a receipt that another payout has, of whatever client', updated_at FROM (
	SELECT client_id, id, updated_at, row_number() OVER (PARTITION BY connection, provider_reference ORDER BY id) AS nth
	FROM payouts WHERE provider_reference IS NOT NULL) AS p
WHERE nth > 1 ON CONFLICT DO NOTHING;

-- The event that tells a receipt that came after the money. What locks payments
-- comes last, after what takes long.
ALTER TABLE payments ADD COLUMN updated_event INTEGER;
