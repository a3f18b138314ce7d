-- rolling
-- What all instances share of their TLS certificates: certificates with their keys, the
-- account at the certificate authority, and answers to its challenges; all sealed.
CREATE TABLE certificates (
	name        TEXT    NOT NULL PRIMARY KEY,
	version     BIGINT  NOT NULL,
	sealed      BYTEA   NOT NULL, -- empty: not obtained yet
	challenge   BIGINT  NOT NULL, -- 1: needed for minutes only
	tries       BIGINT  NOT NULL, -- orders since the last success
	lease_until BIGINT  NOT NULL, -- no instance orders it before
	written_at  BIGINT  NOT NULL
);
