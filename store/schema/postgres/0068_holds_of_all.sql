-- rolling
-- The cause comes first: on Citus a table whose first column is the client is spread over
-- the nodes, and the holds of all clients were on one of them. While that node was away,
-- nobody's payout could be taken.
CREATE TABLE payout_holds_new (
	cause     TEXT   NOT NULL,
	client_id BYTEA  NOT NULL,
	held_at   BIGINT NOT NULL,
	held_by   TEXT   NOT NULL,
	reason    TEXT,
	PRIMARY KEY (client_id, cause)
);
INSERT INTO payout_holds_new (cause, client_id, held_at, held_by, reason) SELECT cause, client_id, held_at, held_by, reason FROM payout_holds;
DROP TABLE payout_holds;
ALTER TABLE payout_holds_new RENAME TO payout_holds;
ALTER INDEX payout_holds_new_pkey RENAME TO payout_holds_pkey;
