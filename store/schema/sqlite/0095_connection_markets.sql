-- rolling
-- What the operator of a connection says that its account may do. It only narrows what is offered,
-- and nothing about money reads it.
CREATE TABLE connection_markets (
	connection    TEXT    NOT NULL PRIMARY KEY,
	account       TEXT    NOT NULL, -- the fingerprint of the account that was asked
	read_at       INTEGER NOT NULL, -- when the operator last said it; 0: never
	tried_at      INTEGER NOT NULL, -- when it was last asked
	failing_since INTEGER NOT NULL, -- since when it cannot be read; 0: the last read went well
	problem       TEXT    NOT NULL, -- why the last read failed; '' if it did not
	markets       TEXT    NOT NULL  -- what it said, as JSON; '' before the first time
) STRICT;
