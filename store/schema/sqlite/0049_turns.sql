-- Work for one instance at a time: whose turn it is, when it was last done, and
-- what it found. The row changes by compare-and-swap of its version.
CREATE TABLE turns (
	name        TEXT    NOT NULL PRIMARY KEY,
	version     INTEGER NOT NULL,
	lease_until INTEGER NOT NULL,
	owner       BLOB    NOT NULL, -- the instance that has the turn, or had it last
	ran_at      INTEGER NOT NULL, -- when the work was last finished; 0: never
	result      TEXT    NOT NULL  -- what it found, as JSON; '' before the first time
) STRICT, WITHOUT ROWID;

-- The instances that run on this database. Nothing about money reads it.
CREATE TABLE instances (
	id         BLOB    NOT NULL PRIMARY KEY,
	version    TEXT    NOT NULL,
	level      INTEGER NOT NULL,
	role       TEXT    NOT NULL,
	started_at INTEGER NOT NULL,
	seen_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
