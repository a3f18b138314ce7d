-- Who is signed in where. Only the hash of a token is here.
CREATE TABLE sessions (
	token_hash BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
	id         BLOB    NOT NULL UNIQUE,
	person_id  BLOB    NOT NULL,
	started_at INTEGER NOT NULL,
	seen_at    INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	idle       INTEGER NOT NULL, -- it ends so long after seen_at, in microseconds
	proved_at  INTEGER,
	device     TEXT    NOT NULL,
	address    TEXT    NOT NULL
) STRICT;
CREATE INDEX sessions_person ON sessions (person_id, started_at);
CREATE INDEX sessions_expires ON sessions (expires_at);

-- How often somebody guessed: by the hash of a login, and of an address.
CREATE TABLE guesses (
	name     BLOB    NOT NULL PRIMARY KEY CHECK (length(name) = 32),
	count    INTEGER NOT NULL,
	since    INTEGER NOT NULL,
	last_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX guesses_last ON guesses (last_at);

-- What counts once: steps of forms, challenges, commits whose end is unknown.
CREATE TABLE used_once (
	hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
	expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX used_once_expires ON used_once (expires_at);
