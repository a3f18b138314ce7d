-- rolling
-- What all instances share of their TLS certificates: certificates with their keys, the
-- account at the certificate authority, and answers to its challenges; all sealed.
CREATE TABLE certificates (
	name        TEXT    NOT NULL PRIMARY KEY,
	version     INTEGER NOT NULL,
	sealed      BLOB    NOT NULL, -- empty: not obtained yet
	challenge   INTEGER NOT NULL, -- 1: needed for minutes only
	tries       INTEGER NOT NULL, -- orders since the last success
	lease_until INTEGER NOT NULL, -- no instance orders it before
	written_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
