-- rolling
-- A checkout is an order that is paid on a page; an ask is one payment within it. Older programs
-- make none, and follow none on before the level allows it.
CREATE TABLE checkouts (
	client_id            BYTEA NOT NULL,
	id                   BYTEA NOT NULL, -- its order is the order of created_at
	idempotency_key      BYTEA NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,                -- where it was not spelled in lower case
	body_hash            BYTEA NOT NULL CHECK (length(body_hash) = 32),
	body_version         BIGINT NOT NULL,
	token                TEXT NOT NULL,
	state                TEXT NOT NULL CHECK (state = 'open' OR state = 'paid' OR state = 'expired' OR state = 'cancelled'),
	amount               BIGINT NOT NULL CHECK (amount > 0),
	currency             TEXT NOT NULL,
	reference            TEXT,
	country              TEXT,
	methods              TEXT,                -- separated by spaces
	phone                TEXT,
	phone_fixed          BIGINT NOT NULL CHECK (phone_fixed = 0 OR phone_fixed = 1 AND phone IS NOT NULL),
	return_url           TEXT,
	language             TEXT,
	document             BYTEA NOT NULL, -- what is copied to each ask
	asks                 BIGINT NOT NULL CHECK (asks >= 0),
	payment_id           BYTEA,          -- of the first ask that was credited
	paid_at              BIGINT,
	late                 BIGINT NOT NULL CHECK (late = 0 OR late = 1 AND payment_id IS NOT NULL),
	overpaid             BIGINT NOT NULL CHECK (overpaid = 0 OR overpaid = 1 AND payment_id IS NOT NULL),
	created_at           BIGINT NOT NULL,
	updated_at           BIGINT NOT NULL CHECK (updated_at >= created_at),
	expires_at           BIGINT NOT NULL CHECK (expires_at > created_at),
	erased_at            BIGINT,
	PRIMARY KEY (client_id, id),
	CHECK ((state = 'paid') = (payment_id IS NOT NULL)),
	CHECK ((payment_id IS NULL) = (paid_at IS NULL))
);

CREATE UNIQUE INDEX checkouts_key ON checkouts (client_id, idempotency_key);
CREATE INDEX checkouts_open ON checkouts (expires_at, client_id, id) WHERE state = 'open';
CREATE INDEX checkouts_state ON checkouts (client_id, state, id);
CREATE INDEX checkouts_reference ON checkouts (client_id, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX checkouts_phone ON checkouts (client_id, phone) WHERE phone IS NOT NULL;

CREATE TRIGGER checkouts_move BEFORE UPDATE ON checkouts FOR EACH ROW
WHEN (OLD.state <> NEW.state AND NOT (OLD.state = 'open' OR NEW.state = 'paid'))
EXECUTE FUNCTION till_refuse('no such move of its state');
CREATE TRIGGER checkouts_fixed BEFORE UPDATE ON checkouts FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.token <> NEW.token
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.created_at <> NEW.created_at OR OLD.expires_at <> NEW.expires_at
	OR NEW.asks < OLD.asks OR NEW.late < OLD.late OR NEW.overpaid < OLD.overpaid OR OLD.payment_id <> NEW.payment_id
	OR NEW.updated_at < OLD.updated_at)
EXECUTE FUNCTION till_refuse('a fixed column changed');

-- An ask of a checkout, before its payment is made. The key is derived, so the payment of a lost
-- ask is found again.
CREATE TABLE checkout_asks (
	client_id   BYTEA NOT NULL,
	checkout_id BYTEA NOT NULL,
	n           BIGINT NOT NULL CHECK (n > 0),
	key         BYTEA NOT NULL CHECK (length(key) = 16),
	method      TEXT NOT NULL,
	country     TEXT,
	amount      BIGINT NOT NULL CHECK (amount > 0),
	currency    TEXT NOT NULL,
	phone       TEXT NOT NULL,
	asked_at    BIGINT NOT NULL,
	refused     TEXT, -- why there is no payment
	PRIMARY KEY (client_id, checkout_id, n)
);

CREATE UNIQUE INDEX checkout_asks_key ON checkout_asks (client_id, key);
CREATE INDEX checkout_asks_phone ON checkout_asks (client_id, phone);

CREATE TRIGGER checkout_asks_fixed BEFORE UPDATE ON checkout_asks FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.checkout_id <> NEW.checkout_id OR OLD.n <> NEW.n OR OLD.key <> NEW.key OR OLD.method <> NEW.method
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.asked_at <> NEW.asked_at)
EXECUTE FUNCTION till_refuse('a fixed column changed');

-- How far a client's event log was followed for its checkouts. Who never had one has no row.
CREATE TABLE checkout_cursors (
	client_id BYTEA NOT NULL PRIMARY KEY,
	sequence  BIGINT NOT NULL
);

-- Global look-up: whose page is at this address? An address is drawn, and tells nothing.
CREATE TABLE pay_tokens (
	token      TEXT NOT NULL PRIMARY KEY,
	client_id  BYTEA NOT NULL,
	subject_id BYTEA NOT NULL,
	kind       TEXT NOT NULL CHECK (kind = 'checkout' OR kind = 'link')
);
