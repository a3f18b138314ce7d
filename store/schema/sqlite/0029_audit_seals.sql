-- The links of the audit chains that are made with the installation's key. Those in
-- audit_chain are from before; the first link here goes on from the last there.
CREATE TABLE audit_seals (
	client_id BLOB    NOT NULL,
	sequence  INTEGER NOT NULL,
	covers    INTEGER NOT NULL,
	hash      BLOB    NOT NULL,
	PRIMARY KEY (client_id, sequence)
) STRICT, WITHOUT ROWID;
