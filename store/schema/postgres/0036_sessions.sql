-- Who is signed in where. Only the hash of a token is here.
CREATE TABLE sessions (
	token_hash BYTEA    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
	id         BYTEA    NOT NULL UNIQUE,
	person_id  BYTEA    NOT NULL,
	started_at BIGINT NOT NULL,
	seen_at    BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	idle       BIGINT NOT NULL, -- it ends so long after seen_at, in microseconds
	proved_at  BIGINT,
	device     TEXT    NOT NULL,
	address    TEXT    NOT NULL
);
CREATE INDEX sessions_person ON sessions (person_id, started_at);
CREATE INDEX sessions_expires ON sessions (expires_at);

-- How often somebody guessed: by the hash of a login, and of an address.
CREATE TABLE guesses (
	name     BYTEA    NOT NULL PRIMARY KEY CHECK (length(name) = 32),
	count    BIGINT NOT NULL,
	since    BIGINT NOT NULL,
	last_at  BIGINT NOT NULL
);
CREATE INDEX guesses_last ON guesses (last_at);

-- What counts once: steps of forms, challenges, commits whose end is unknown.
CREATE TABLE used_once (
	hash       BYTEA    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
	expires_at BIGINT NOT NULL
);
CREATE INDEX used_once_expires ON used_once (expires_at);
