-- rolling
-- A link is an address that anybody can pay on: each payer gets a checkout of their own. Only its
-- title, its end and whether it is switched on change.
CREATE TABLE links (
	client_id            BYTEA NOT NULL,
	id                   BYTEA NOT NULL, -- its order is the order of created_at
	idempotency_key      BYTEA NOT NULL CHECK (length(idempotency_key) = 16),
	idempotency_key_sent TEXT,                -- where it was not spelled in lower case
	body_hash            BYTEA NOT NULL CHECK (length(body_hash) = 32),
	body_version         BIGINT NOT NULL,
	token                TEXT NOT NULL,
	active               BIGINT NOT NULL CHECK (active = 0 OR active = 1),
	title                TEXT NOT NULL,
	amount               BIGINT CHECK (amount > 0), -- NULL: the payer types it
	currency             TEXT NOT NULL,
	min_amount           BIGINT CHECK (min_amount IS NULL OR min_amount > 0 AND amount IS NULL),
	max_amount           BIGINT CHECK (max_amount IS NULL OR max_amount > 0 AND amount IS NULL),
	suggested            TEXT,                -- amounts, separated by spaces
	ask_label            TEXT,                -- what the payer is asked for; it becomes the checkout's reference
	ask_required         BIGINT NOT NULL CHECK (ask_required = 0 OR ask_required = 1 AND ask_label IS NOT NULL),
	country              TEXT,
	methods              TEXT,                -- separated by spaces
	return_url           TEXT,
	language             TEXT,
	document             BYTEA NOT NULL, -- what is copied to each checkout
	created_at           BIGINT NOT NULL,
	updated_at           BIGINT NOT NULL CHECK (updated_at >= created_at),
	expires_at           BIGINT,             -- NULL: never
	PRIMARY KEY (client_id, id)
);

CREATE UNIQUE INDEX links_key ON links (client_id, idempotency_key);

CREATE TRIGGER links_fixed BEFORE UPDATE ON links FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.body_hash <> NEW.body_hash
	OR OLD.token <> NEW.token OR OLD.amount IS DISTINCT FROM NEW.amount OR OLD.currency <> NEW.currency OR OLD.min_amount IS DISTINCT FROM NEW.min_amount
	OR OLD.max_amount IS DISTINCT FROM NEW.max_amount OR OLD.suggested IS DISTINCT FROM NEW.suggested OR OLD.ask_label IS DISTINCT FROM NEW.ask_label
	OR OLD.ask_required <> NEW.ask_required OR OLD.country IS DISTINCT FROM NEW.country OR OLD.methods IS DISTINCT FROM NEW.methods
	OR OLD.return_url IS DISTINCT FROM NEW.return_url OR OLD.language IS DISTINCT FROM NEW.language OR OLD.document <> NEW.document
	OR OLD.created_at <> NEW.created_at OR NEW.updated_at < OLD.updated_at)
EXECUTE FUNCTION till_refuse('a fixed column changed');

-- Which link opened the checkout.
ALTER TABLE checkouts ADD COLUMN link_id BYTEA;
CREATE INDEX checkouts_link ON checkouts (client_id, link_id, id) WHERE link_id IS NOT NULL;

-- The phone, the document and the body's hash of a checkout change by an erasure alone, once it has
-- ended; the phone of an ask becomes a token.
DROP TRIGGER checkouts_fixed ON checkouts;
CREATE TRIGGER checkouts_fixed BEFORE UPDATE ON checkouts FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id OR OLD.idempotency_key <> NEW.idempotency_key OR OLD.token <> NEW.token
	OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.created_at <> NEW.created_at OR OLD.expires_at <> NEW.expires_at
	OR NEW.asks < OLD.asks OR NEW.late < OLD.late OR NEW.overpaid < OLD.overpaid OR OLD.payment_id IS NOT NULL AND OLD.payment_id IS DISTINCT FROM NEW.payment_id
	OR NEW.updated_at < OLD.updated_at OR OLD.link_id IS DISTINCT FROM NEW.link_id OR OLD.reference IS DISTINCT FROM NEW.reference OR OLD.country IS DISTINCT FROM NEW.country
	OR OLD.methods IS DISTINCT FROM NEW.methods OR OLD.phone_fixed <> NEW.phone_fixed OR OLD.return_url IS DISTINCT FROM NEW.return_url OR OLD.language IS DISTINCT FROM NEW.language
	OR OLD.erased_at IS NOT NULL AND OLD.erased_at IS DISTINCT FROM NEW.erased_at
	OR OLD.phone IS DISTINCT FROM NEW.phone AND coalesce(substr(NEW.phone, 1, 1), '') <> '~'
	OR (OLD.phone IS DISTINCT FROM NEW.phone OR OLD.document <> NEW.document OR OLD.body_hash <> NEW.body_hash OR OLD.body_version <> NEW.body_version)
	AND (NEW.erased_at IS NULL OR OLD.state = 'open'))
EXECUTE FUNCTION till_refuse('a fixed column changed');

DROP TRIGGER checkout_asks_fixed ON checkout_asks;
CREATE TRIGGER checkout_asks_fixed BEFORE UPDATE ON checkout_asks FOR EACH ROW
WHEN (OLD.client_id <> NEW.client_id OR OLD.checkout_id <> NEW.checkout_id OR OLD.n <> NEW.n OR OLD.key <> NEW.key OR OLD.method <> NEW.method
	OR OLD.country IS DISTINCT FROM NEW.country OR OLD.amount <> NEW.amount OR OLD.currency <> NEW.currency OR OLD.asked_at <> NEW.asked_at
	OR OLD.refused IS NOT NULL AND OLD.refused IS DISTINCT FROM NEW.refused OR OLD.phone <> NEW.phone AND substr(NEW.phone, 1, 1) <> '~')
EXECUTE FUNCTION till_refuse('a fixed column changed');
