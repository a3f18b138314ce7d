-- When 'till verify' ran to its end, and what it found. Old rows are deleted.
CREATE TABLE verifications (
	at         INTEGER PRIMARY KEY, -- when it ended
	began_at   INTEGER NOT NULL,
	problems   INTEGER NOT NULL,
	audit_key  INTEGER NOT NULL -- 1: the audit chains were compared with the installation's key
) STRICT;

-- What is put aside is a few lines among all others.
CREATE INDEX postings_suspense ON postings (currency, client_id, amount) WHERE account = 'suspense';
