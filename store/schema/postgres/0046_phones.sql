-- Which payments and payouts a phone has. The mark is 8 bytes of an HMAC under a
-- key of the installation, so that the table tells no number; whoever reads it
-- compares the rows themselves. It is filled behind the commits, in the order of
-- ids: creates pay nothing for it.
CREATE TABLE phone_index (
	client_id BYTEA NOT NULL,
	mark      BIGINT NOT NULL,
	payout    BIGINT NOT NULL CHECK (payout = 0 OR payout = 1),
	id        BYTEA NOT NULL,
	PRIMARY KEY (client_id, mark, payout, id)
);

-- How far it is filled, of each client.
CREATE TABLE phone_cursors (
	client_id BYTEA NOT NULL PRIMARY KEY,
	payment   BYTEA NOT NULL, -- the last payment that is in it
	payout    BYTEA NOT NULL,
	log_end   BIGINT NOT NULL -- the client's log had this many events when nothing was left to do
);
