-- rolling
-- By which words payments and payouts are found: parts of references, words of descriptions,
-- ends of phones, amounts. The mark is 8 bytes of HMACs under a key of the installation, so that the
-- table tells none of them; whoever reads it compares the rows themselves. It is filled behind
-- the commits, in the order of ids: creates pay nothing for it.
CREATE TABLE word_index (
	client_id BYTEA NOT NULL,
	mark      BIGINT NOT NULL,
	payout    BIGINT NOT NULL CHECK (payout = 0 OR payout = 1),
	id        BYTEA NOT NULL,
	PRIMARY KEY (client_id, mark, payout, id)
);

-- How far it is filled, of each client.
CREATE TABLE word_cursors (
	client_id BYTEA NOT NULL PRIMARY KEY,
	payment   BYTEA NOT NULL, -- the last payment that is in it
	payout    BYTEA NOT NULL,
	log_end   BIGINT NOT NULL -- the client's log had this many events when nothing was left to do
);
