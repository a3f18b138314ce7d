-- Somebody who signs in to the console. A person belongs to no client: roles are
-- memberships.
CREATE TABLE people (
	person_id   BLOB    NOT NULL PRIMARY KEY,
	login       TEXT    NOT NULL UNIQUE, -- an e-mail address in lower case, or + and a phone number
	name        TEXT    NOT NULL,
	language    TEXT    NOT NULL,
	zone        TEXT,                    -- null: the merchant's
	theme       TEXT,                    -- null: the system's
	no_keys     INTEGER NOT NULL DEFAULT 0 CHECK (no_keys = 0 OR no_keys = 1),
	created_at  INTEGER NOT NULL,
	disabled_at INTEGER,
	seen_at     INTEGER,
	password    TEXT,                    -- Argon2id, as PHC text
	totp        BLOB,                    -- the secret, encrypted
	totp_step   INTEGER NOT NULL DEFAULT 0 -- the last step whose code was used
) STRICT;

-- A person's role with one client; the zero client is the house.
CREATE TABLE memberships (
	client_id  BLOB    NOT NULL,
	person_id  BLOB    NOT NULL,
	role       TEXT    NOT NULL,
	granted_at INTEGER NOT NULL,
	granted_by TEXT    NOT NULL,
	PRIMARY KEY (client_id, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_person ON memberships (person_id, client_id);

-- What a client asks of all its people.
CREATE TABLE access_rules (
	client_id     BLOB    NOT NULL PRIMARY KEY,
	second_factor INTEGER NOT NULL CHECK (second_factor = 0 OR second_factor = 1)
) STRICT;

-- On which days a person of the house has looked into a client.
CREATE TABLE looks (
	client_id BLOB    NOT NULL,
	person_id BLOB    NOT NULL,
	day       INTEGER NOT NULL, -- days of UTC since 1970
	PRIMARY KEY (client_id, person_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE passkeys (
	person_id  BLOB    NOT NULL,
	id         BLOB    NOT NULL,
	name       TEXT    NOT NULL,
	record     TEXT    NOT NULL, -- the whole credential record, as JSON
	created_at INTEGER NOT NULL,
	used_at    INTEGER,
	PRIMARY KEY (person_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE recovery_codes (
	person_id BLOB NOT NULL,
	hash      BLOB NOT NULL CHECK (length(hash) = 32),
	PRIMARY KEY (person_id, hash)
) STRICT, WITHOUT ROWID;

-- Links that give a role, or let a person back in. Whoever opens one names no
-- client, so the hash of its token leads.
CREATE TABLE invitations (
	token_hash   BLOB    NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
	id           BLOB    NOT NULL UNIQUE,
	kind         TEXT    NOT NULL CHECK (kind = 'join' OR kind = 'reset'),
	client_id    BLOB    NOT NULL,
	role         TEXT    NOT NULL, -- '' for a reset
	name         TEXT    NOT NULL,
	login        TEXT,             -- null: the invited choose
	person_id    BLOB,             -- whom a reset lets in; else who has spent it
	invited_by   TEXT    NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	spent_at     INTEGER,
	withdrawn_at INTEGER
) STRICT;
CREATE INDEX invitations_client ON invitations (client_id, created_at);
