-- rolling
-- A link is an address that anybody can pay on: each payer gets a checkout of their own. Only its
-- title, its end and whether it is switched on change.
CREATE TABLE links (
	client_id            BLOB NOT NULL,
	id                   BLOB NOT NULL, -- its order is the order of created_at
	idempotency_key      BLOB NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,                -- where it was not spelled in lower case
	body_hash            BLOB NOT NULL CHECK (length(body_hash) = 32),
	body_version         INTEGER NOT NULL,
	token                TEXT NOT NULL,
	active               INTEGER NOT NULL CHECK (active = 0 OR active = 1),
	title                TEXT NOT NULL,
	amount               INTEGER CHECK (amount > 0), -- NULL: the payer types it
	currency             TEXT NOT NULL,
	min_amount           INTEGER CHECK (min_amount IS NULL OR min_amount > 0 AND amount IS NULL),
	max_amount           INTEGER CHECK (max_amount IS NULL OR max_amount > 0 AND amount IS NULL),
	suggested            TEXT,                -- amounts, separated by spaces
	ask_label            TEXT,                -- what the payer is asked for; it becomes the checkout's reference
	ask_required         INTEGER NOT NULL CHECK (ask_required = 0 OR ask_required = 1 AND ask_label IS NOT NULL),
	country              TEXT,
	methods              TEXT,                -- separated by spaces
	return_url           TEXT,
	language             TEXT,
	document             BLOB NOT NULL, -- what is copied to each checkout
	created_at           INTEGER NOT NULL,
	updated_at           INTEGER NOT NULL CHECK (updated_at >= created_at),
	expires_at           INTEGER,             -- NULL: never
	PRIMARY KEY (client_id, id)
) STRICT;

CREATE UNIQUE INDEX links_key ON links (client_id, idempotency_key);

CREATE TRIGGER links_fixed BEFORE UPDATE ON links
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.body_hash <> NEW.body_hash
	OR OLD.token <> NEW.token OR OLD.amount IS NOT NEW.amount OR OLD.currency <> NEW.currency OR OLD.min_amount IS NOT NEW.min_amount
	OR OLD.max_amount IS NOT NEW.max_amount OR OLD.suggested IS NOT NEW.suggested OR OLD.ask_label IS NOT NEW.ask_label
	OR OLD.ask_required <> NEW.ask_required OR OLD.country IS NOT NEW.country OR OLD.methods IS NOT NEW.methods
	OR OLD.return_url IS NOT NEW.return_url OR OLD.language IS NOT NEW.language OR OLD.document <> NEW.document
	OR OLD.created_at <> NEW.created_at OR NEW.updated_at < OLD.updated_at
BEGIN SELECT RAISE(ABORT, 'links: a fixed column changed'); END;

-- Which link opened the checkout.
ALTER TABLE checkouts ADD COLUMN link_id BLOB;
CREATE INDEX checkouts_link ON checkouts (client_id, link_id, id) WHERE link_id IS NOT NULL;

-- The phone, the document and the body's hash of a checkout change by an erasure alone, once it has
-- ended; the phone of an ask becomes a token.
DROP TRIGGER checkouts_fixed;
CREATE TRIGGER checkouts_fixed BEFORE UPDATE ON checkouts
WHEN OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.token <> NEW.token
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.created_at <> NEW.created_at OR OLD.expires_at <> NEW.expires_at
	OR NEW.asks < OLD.asks OR NEW.late < OLD.late OR NEW.overpaid < OLD.overpaid OR OLD.payment_id IS NOT NULL AND OLD.payment_id IS NOT NEW.payment_id
	OR NEW.updated_at < OLD.updated_at OR OLD.link_id IS NOT NEW.link_id OR OLD.reference IS NOT NEW.reference OR OLD.country IS NOT NEW.country
	OR OLD.methods IS NOT NEW.methods OR OLD.phone_fixed <> NEW.phone_fixed OR OLD.return_url IS NOT NEW.return_url OR OLD.language IS NOT NEW.language
	OR OLD.erased_at IS NOT NULL AND OLD.erased_at IS NOT NEW.erased_at
	OR OLD.phone IS NOT NEW.phone AND coalesce(substr(NEW.phone, 1, 1), '') <> '~'
	OR (OLD.phone IS NOT NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version)
	AND (NEW.erased_at IS NULL OR OLD.state = 'open')
BEGIN SELECT RAISE(ABORT, 'checkouts: a fixed column changed'); END;

DROP TRIGGER checkout_asks_fixed;
CREATE TRIGGER checkout_asks_fixed BEFORE UPDATE ON checkout_asks
WHEN OLD.client_id <> NEW.client_id OR OLD.checkout_id <> NEW.checkout_id OR OLD.n <> NEW.n OR OLD.key <> NEW.key OR OLD.method <> NEW.method
	OR OLD.country IS NOT NEW.country OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.asked_at <> NEW.asked_at
	OR OLD.refused IS NOT NULL AND OLD.refused IS NOT NEW.refused OR OLD.phone <> NEW.phone AND substr(NEW.phone, 1, 1) <> '~'
BEGIN SELECT RAISE(ABORT, 'checkout_asks: a fixed column changed'); END;
