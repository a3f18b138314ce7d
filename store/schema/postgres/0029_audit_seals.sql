-- The links of the audit chains that are made with the installation's key. Those in
-- audit_chain are from before; the first link here goes on from the last there.
CREATE TABLE audit_seals (
	client_id BYTEA    NOT NULL,
	sequence  BIGINT NOT NULL,
	covers    BIGINT NOT NULL,
	hash      BYTEA    NOT NULL,
	PRIMARY KEY (client_id, sequence)
);
