-- rolling
-- By which words payments and payouts are found: parts of references, words of descriptions,
-- ends of phones, amounts. The mark is 8 bytes of HMACs under a key of the installation, so that the
-- table tells none of them; whoever reads it compares the rows themselves. It is filled behind
-- the commits, in the order of ids: creates pay nothing for it.
CREATE TABLE word_index (
	client_id BLOB NOT NULL,
	mark      INTEGER NOT NULL,
	payout    INTEGER NOT NULL CHECK (payout = 0 OR payout = 1),
	id        BLOB NOT NULL,
	PRIMARY KEY (client_id, mark, payout, id)
) STRICT, WITHOUT ROWID;

-- How far it is filled, of each client.
CREATE TABLE word_cursors (
	client_id BLOB NOT NULL PRIMARY KEY,
	payment   BLOB NOT NULL, -- the last payment that is in it
	payout    BLOB NOT NULL,
	log_end   INTEGER NOT NULL -- the client's log had this many events when nothing was left to do
) STRICT, WITHOUT ROWID;
