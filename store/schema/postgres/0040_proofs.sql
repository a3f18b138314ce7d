-- When 'till verify' ran to its end, and what it found. Old rows are deleted.
CREATE TABLE verifications (
	at         BIGINT PRIMARY KEY, -- when it ended
	began_at   BIGINT NOT NULL,
	problems   BIGINT NOT NULL,
	audit_key  SMALLINT NOT NULL -- 1: the audit chains were compared with the installation's key
);

-- What is put aside is a few lines among all others.
CREATE INDEX postings_suspense ON postings (currency, client_id, amount) WHERE account = 'suspense';
