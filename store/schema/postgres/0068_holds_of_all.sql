-- rolling
-- The cause comes first: on Citus a table whose first column is the client is spread over
-- the nodes, and the holds of all clients were on one of them. While that node was away,
-- nobody's payout could be taken. A renamed table would not be in its place there.
CREATE TABLE payout_holds_before (
	cause     TEXT   NOT NULL,
	client_id BYTEA  NOT NULL,
	held_at   BIGINT NOT NULL,
	held_by   TEXT   NOT NULL,
	reason    TEXT
);
INSERT INTO payout_holds_before (cause, client_id, held_at, held_by, reason) SELECT cause, client_id, held_at, held_by, reason FROM payout_holds;
DROP TABLE payout_holds;
CREATE TABLE payout_holds (
	cause     TEXT   NOT NULL,
	client_id BYTEA  NOT NULL,
	held_at   BIGINT NOT NULL,
	held_by   TEXT   NOT NULL,
	reason    TEXT,
	PRIMARY KEY (client_id, cause)
);
INSERT INTO payout_holds (cause, client_id, held_at, held_by, reason) SELECT cause, client_id, held_at, held_by, reason FROM payout_holds_before;
DROP TABLE payout_holds_before;
