-- rolling
-- What the house decides about the pages that customers pay on. Who may not be asked by pages is
-- named by a MAC of the number: no number is stored.
CREATE TABLE page_blocks (
	name       BYTEA NOT NULL PRIMARY KEY CHECK (length(name) = 32),
	blocked_at BIGINT NOT NULL,
	blocked_by TEXT NOT NULL,
	reason     TEXT NOT NULL
);
CREATE INDEX page_blocks_time ON page_blocks (blocked_at, name);

-- Whose pages are switched off. A client of sixteen zeros means all clients.
CREATE TABLE page_switches (
	switched_at BIGINT NOT NULL,
	client_id   BYTEA NOT NULL PRIMARY KEY,
	switched_by TEXT NOT NULL,
	reason      TEXT NOT NULL
);

-- The name that pages show instead of the client's, and the one that waits for the house.
ALTER TABLE client_profiles ADD COLUMN pay_name TEXT NOT NULL DEFAULT '';
ALTER TABLE client_profiles ADD COLUMN pay_name_asked TEXT NOT NULL DEFAULT '';
ALTER TABLE client_profiles ADD COLUMN pay_name_asked_at BIGINT;
ALTER TABLE client_profiles ADD COLUMN pay_name_asked_by TEXT;
CREATE INDEX client_profiles_pay_name ON client_profiles (client_id) WHERE pay_name <> '';
CREATE INDEX client_profiles_pay_name_asked ON client_profiles (pay_name_asked_at, client_id) WHERE pay_name_asked <> '';

-- The newest checkouts that a client's links have opened.
CREATE INDEX checkouts_of_links ON checkouts (client_id, id) WHERE link_id IS NOT NULL;
