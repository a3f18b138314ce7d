-- Strays: money that names us and that we do not know. A callback whose address
-- is ours tells of a payment or payout that is not here, or a line of an
-- operator's statement has a reference of our form. The table is their book: none
-- is in the ledger until somebody owns it. Nobody may know whose it is, so the
-- connection leads and not the client.
CREATE TABLE strays (
	connection   TEXT    NOT NULL,
	name         TEXT    NOT NULL, -- 'r' and our reference, or 's' and an id of ours, or 't' and a receipt
	id           BYTEA    NOT NULL UNIQUE,
	reference    BYTEA,             -- what we sent, as the operator repeats it
	subject_id   BYTEA,             -- the payment or payout that it names
	client_id    BYTEA,             -- whom it names
	receipt      TEXT,
	direction    TEXT    NOT NULL CHECK (direction = 'in' OR direction = 'out' OR direction = ''), -- '': nobody says
	source       TEXT    NOT NULL CHECK (source = 'callback' OR source = 'statement'),
	seen_at      BIGINT NOT NULL,
	claimed      TEXT    NOT NULL, -- what a callback says became of it; '': it does not say
	minor        BIGINT CHECK (minor > 0), -- as claimed or, once it is confirmed, as the statement says
	currency     TEXT,
	confirmed_at BIGINT,          -- since when a statement says that the money moved
	confirmed    TEXT,             -- which one
	sealed       BYTEA,             -- the callback's body, encrypted

	standing     BIGINT NOT NULL, -- 1: a credit may still turn up for it
	why          TEXT,             -- what it was closed for; null: it is open
	closed_at    BIGINT,
	closed_by    TEXT,
	reason       TEXT,
	evidence     BYTEA,             -- SHA-256
	owner_id     BYTEA,             -- the client that has the money
	given_id     BYTEA,             -- the client that it was attributed to, if it ever was
	settled_id   BYTEA,             -- the payment or payout that turned out to be it
	taken_back   BIGINT NOT NULL DEFAULT 0, -- 1: it had been attributed before, and that was taken back
	PRIMARY KEY (connection, name),
	CHECK ((minor IS NULL) = (currency IS NULL)),
	CHECK (why IS NULL OR why = 'attributed' OR why = 'credited' OR why = 'foreign'),
	CHECK (standing = CASE WHEN why IS NULL OR why = 'attributed' THEN 1 ELSE 0 END),
	CHECK ((why IS NULL) = (closed_at IS NULL) AND (why IS NULL) = (closed_by IS NULL)),
	CHECK (taken_back = 0 OR taken_back = 1 AND why = 'credited' AND given_id IS NOT NULL)
);

-- The few that a credit is held against.
CREATE INDEX strays_standing ON strays (connection, name) WHERE standing = 1;
CREATE INDEX strays_reference ON strays (connection, reference);
CREATE INDEX strays_subject ON strays (connection, subject_id);
CREATE INDEX strays_receipt ON strays (connection, receipt);
