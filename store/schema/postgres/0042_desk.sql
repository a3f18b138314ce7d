-- Who asked a customer at the counter. The row is written before the payment,
-- which has the same idempotency key.
CREATE TABLE desk_payments (
	client_id BYTEA NOT NULL REFERENCES clients (client_id),
	key BYTEA NOT NULL CHECK (length(key) = 16),
	person_id BYTEA NOT NULL,
	asked_at BIGINT NOT NULL,
	PRIMARY KEY (client_id, key)
);
CREATE INDEX desk_payments_person ON desk_payments (client_id, person_id, asked_at);
