-- Who asked a customer at the counter. The row is written before the payment,
-- which has the same idempotency key.
CREATE TABLE desk_payments (
	client_id BLOB NOT NULL REFERENCES clients (client_id),
	key BLOB NOT NULL CHECK (length(key) = 16),
	person_id BLOB NOT NULL,
	asked_at INTEGER NOT NULL,
	PRIMARY KEY (client_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX desk_payments_person ON desk_payments (client_id, person_id, asked_at);
