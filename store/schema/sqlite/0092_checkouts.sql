-- rolling
-- A checkout is an order that is paid on a page; an ask is one payment within it. Older programs
-- make none, and follow none on before the level allows it.
CREATE TABLE checkouts (
	client_id            BLOB NOT NULL,
	id                   BLOB NOT NULL, -- its order is the order of created_at
	idempotency_key      BLOB NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,                -- where it was not spelled in lower case
	body_hash            BLOB NOT NULL CHECK (length(body_hash) = 32),
	body_version         INTEGER NOT NULL,
	token                TEXT NOT NULL,
	state                TEXT NOT NULL CHECK (state = 'open' OR state = 'paid' OR state = 'expired' OR state = 'cancelled'),
	amount               INTEGER NOT NULL CHECK (amount > 0),
	currency             TEXT NOT NULL,
	reference            TEXT,
	country              TEXT,
	methods              TEXT,                -- separated by spaces
	phone                TEXT,
	phone_fixed          INTEGER NOT NULL CHECK (phone_fixed = 0 OR phone_fixed = 1 AND phone IS NOT NULL),
	return_url           TEXT,
	language             TEXT,
	document             BLOB NOT NULL, -- what is copied to each ask
	asks                 INTEGER NOT NULL CHECK (asks >= 0),
	payment_id           BLOB,          -- of the first ask that was credited
	paid_at              INTEGER,
	late                 INTEGER NOT NULL CHECK (late = 0 OR late = 1 AND payment_id IS NOT NULL),
	overpaid             INTEGER NOT NULL CHECK (overpaid = 0 OR overpaid = 1 AND payment_id IS NOT NULL),
	created_at           INTEGER NOT NULL,
	updated_at           INTEGER NOT NULL CHECK (updated_at >= created_at),
	expires_at           INTEGER NOT NULL CHECK (expires_at > created_at),
	erased_at            INTEGER,
	PRIMARY KEY (client_id, id),
	CHECK ((state = 'paid') = (payment_id IS NOT NULL)),
	CHECK ((payment_id IS NULL) = (paid_at IS NULL))
) STRICT;

CREATE UNIQUE INDEX checkouts_key ON checkouts (client_id, idempotency_key);
CREATE INDEX checkouts_open ON checkouts (expires_at, client_id, id) WHERE state = 'open';
CREATE INDEX checkouts_state ON checkouts (client_id, state, id);
CREATE INDEX checkouts_reference ON checkouts (client_id, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX checkouts_phone ON checkouts (client_id, phone) WHERE phone IS NOT NULL;

CREATE TRIGGER checkouts_move BEFORE UPDATE ON checkouts
WHEN OLD.state <> NEW.state AND NOT (OLD.state = 'open' OR NEW.state = 'paid')
BEGIN SELECT RAISE(ABORT, 'checkouts: no such move of its state'); END;
CREATE TRIGGER checkouts_fixed BEFORE UPDATE ON checkouts
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.token <> NEW.token
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.created_at <> NEW.created_at OR OLD.expires_at <> NEW.expires_at
	OR NEW.asks < OLD.asks OR NEW.late < OLD.late OR NEW.overpaid < OLD.overpaid OR OLD.payment_id IS NOT NEW.payment_id AND OLD.payment_id IS NOT NULL
	OR NEW.updated_at < OLD.updated_at
BEGIN SELECT RAISE(ABORT, 'checkouts: a fixed column changed'); END;

-- An ask of a checkout, before its payment is made. The key is derived, so the payment of a lost
-- ask is found again.
CREATE TABLE checkout_asks (
	client_id   BLOB NOT NULL,
	checkout_id BLOB NOT NULL,
	n           INTEGER NOT NULL CHECK (n > 0),
	key         BLOB NOT NULL CHECK (length(key) = 16),
	method      TEXT NOT NULL,
	country     TEXT,
	amount      INTEGER NOT NULL CHECK (amount > 0),
	currency    TEXT NOT NULL,
	phone       TEXT NOT NULL,
	asked_at    INTEGER NOT NULL,
	refused     TEXT, -- why there is no payment
	PRIMARY KEY (client_id, checkout_id, n)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX checkout_asks_key ON checkout_asks (client_id, key);
CREATE INDEX checkout_asks_phone ON checkout_asks (client_id, phone);

CREATE TRIGGER checkout_asks_fixed BEFORE UPDATE ON checkout_asks
WHEN OLD.client_id <> NEW.client_id OR OLD.checkout_id <> NEW.checkout_id OR OLD.n <> NEW.n OR OLD.key <> NEW.key OR OLD.method <> NEW.method
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.asked_at <> NEW.asked_at
BEGIN SELECT RAISE(ABORT, 'checkout_asks: a fixed column changed'); END;

-- How far a client's event log was followed for its checkouts. Who never had one has no row.
CREATE TABLE checkout_cursors (
	client_id BLOB NOT NULL PRIMARY KEY,
	sequence  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Global look-up: whose page is at this address? An address is drawn, and tells nothing.
CREATE TABLE pay_tokens (
	token      TEXT NOT NULL PRIMARY KEY,
	client_id  BLOB NOT NULL,
	subject_id BLOB NOT NULL,
	kind       TEXT NOT NULL CHECK (kind = 'checkout' OR kind = 'link')
) STRICT, WITHOUT ROWID;
