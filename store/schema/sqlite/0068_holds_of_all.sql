-- rolling
-- The cause comes first, as on PostgreSQL, where that decides on which node the table is.
CREATE TABLE payout_holds_new (
	cause     TEXT    NOT NULL,
	client_id BLOB    NOT NULL,
	held_at   INTEGER NOT NULL,
	held_by   TEXT    NOT NULL,
	reason    TEXT,
	PRIMARY KEY (client_id, cause)
) STRICT, WITHOUT ROWID;
INSERT INTO payout_holds_new (cause, client_id, held_at, held_by, reason) SELECT cause, client_id, held_at, held_by, reason FROM payout_holds;
DROP TABLE payout_holds;
ALTER TABLE payout_holds_new RENAME TO payout_holds;
