-- How a client is shown to people: its zone and language, and its receipts. A
-- client without a row has the defaults.
CREATE TABLE client_profiles (
	client_id BLOB PRIMARY KEY REFERENCES clients (client_id),
	name TEXT NOT NULL,
	zone TEXT NOT NULL,
	country TEXT NOT NULL,
	language TEXT NOT NULL,
	receipt_head TEXT NOT NULL,
	receipt_foot TEXT NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What people did to one payment or payout, or to anything else. The engine's
-- own rows, which are nearly all, are not in it: its writes cost nothing more.
CREATE INDEX audit_by_subject ON audit (client_id, subject_id, sequence) WHERE actor <> 'engine' AND subject_id IS NOT NULL;
