-- What people wrote about a payment or a payout. A note is never changed; its
-- SHA-256 is in the audit log.
CREATE TABLE notes (
	client_id BYTEA NOT NULL REFERENCES clients (client_id),
	subject_id BYTEA NOT NULL,
	id BYTEA NOT NULL CHECK (length(id) = 16),
	actor TEXT NOT NULL,
	text TEXT NOT NULL CHECK (text <> ''),
	created_at BIGINT NOT NULL,
	PRIMARY KEY (client_id, subject_id, id)
);
