-- Work for one instance at a time: whose turn it is, when it was last done, and
-- what it found. The row changes by compare-and-swap of its version.
CREATE TABLE turns (
	name        TEXT    NOT NULL PRIMARY KEY,
	version     BIGINT  NOT NULL,
	lease_until BIGINT  NOT NULL,
	owner       BYTEA   NOT NULL, -- the instance that has the turn, or had it last
	ran_at      BIGINT  NOT NULL, -- when the work was last finished; 0: never
	result      TEXT    NOT NULL  -- what it found, as JSON; '' before the first time
);

-- The instances that run on this database. Nothing about money reads it.
CREATE TABLE instances (
	id         BYTEA   NOT NULL PRIMARY KEY,
	version    TEXT    NOT NULL,
	level      BIGINT  NOT NULL,
	role       TEXT    NOT NULL,
	started_at BIGINT  NOT NULL,
	seen_at    BIGINT  NOT NULL
);
