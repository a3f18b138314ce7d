-- What belongs to operators and to no client: their tokens, how their callbacks
-- find a payment or payout, and what is wrong with a connection.

-- Tokens that operators let us in by. One instance at a time renews a token: it
-- takes the lease by compare-and-swap on the version.
CREATE TABLE operator_tokens (
	connection  TEXT    NOT NULL,
	name        TEXT    NOT NULL,
	version     INTEGER NOT NULL, -- moves on with every write
	sealed      BLOB    NOT NULL, -- encrypted; empty: there is none
	expires_at  INTEGER NOT NULL,
	refresh_at  INTEGER NOT NULL, -- from then on it is renewed, while it still works
	lease_until INTEGER NOT NULL, -- nobody else asks for a new one before
	lease_owner BLOB    NOT NULL, -- the instance that asks
	PRIMARY KEY (connection, name)
) STRICT, WITHOUT ROWID;

-- From what an operator repeats in its callbacks to the payment or payout that
-- it is about, where all callbacks come to one address: 'r' and our reference,
-- or 'h' and the operator's own handle. It names the client, so it has to be
-- without one.
CREATE TABLE operator_references (
	connection TEXT NOT NULL,
	name       TEXT NOT NULL,
	client_id  BLOB NOT NULL,
	subject_id BLOB NOT NULL,
	kind       TEXT NOT NULL CHECK (kind = 'payment' OR kind = 'payout'),
	PRIMARY KEY (connection, name)
) STRICT, WITHOUT ROWID;

-- What a person has to look at that is no single client's: credentials that an
-- operator refuses.
CREATE TABLE operator_cases (
	connection TEXT    NOT NULL,
	kind       TEXT    NOT NULL,
	detail     TEXT    NOT NULL,
	opened_at  INTEGER NOT NULL,
	closed_at  INTEGER,
	PRIMARY KEY (connection, kind)
) STRICT, WITHOUT ROWID;
