-- Webhook endpoints. The event log is the truth; an endpoint is a cursor into
-- it, so that a hundred thousand events that wait for a dead endpoint are one
-- row here, in the way of nobody.

CREATE TABLE webhook_endpoints (
	client_id       BYTEA    NOT NULL,
	id              BYTEA    NOT NULL,
	url             TEXT    NOT NULL,
	description     TEXT,
	events          TEXT    NOT NULL, -- kinds separated by spaces, or *
	enabled         BIGINT NOT NULL CHECK (enabled = 0 OR enabled = 1),
	disabled_at     BIGINT,
	disabled_why    TEXT CHECK (disabled_why = 'client' OR disabled_why = 'gone' OR disabled_why = 'failing'),
	created_at      BIGINT NOT NULL,
	updated_at      BIGINT NOT NULL,
	secret          BYTEA    NOT NULL, -- sealed
	old_secret      BYTEA,             -- sealed; signs too until old_until
	old_until       BIGINT,
	start_sequence  BIGINT NOT NULL CHECK (start_sequence >= 0), -- the log's end when it was made
	listed_from     BIGINT NOT NULL, -- the log's end when its list of kinds last changed
	cursor_sequence BIGINT NOT NULL, -- all up to here is delivered, not subscribed, or in a row
	lease_until     BIGINT NOT NULL DEFAULT 0,
	lease_version   BIGINT NOT NULL DEFAULT 0,
	blocked_until   BIGINT NOT NULL DEFAULT 0, -- nothing is sent before
	next_retry      BIGINT,                    -- the least due_at of its pending rows
	replay_at       BIGINT,                    -- when an open replay goes on
	drain_to        BIGINT NOT NULL DEFAULT 0, -- a backlog up to here is sent at a bounded pace
	failing_since   BIGINT,                    -- the first failure since the last success
	failures        BIGINT NOT NULL DEFAULT 0, -- failures in a row, a burst counted once
	last_success_at BIGINT,
	PRIMARY KEY (client_id, id),
	CHECK (start_sequence <= cursor_sequence AND start_sequence <= listed_from),
	CHECK ((enabled = 0) = (disabled_at IS NOT NULL) AND (enabled = 0) = (disabled_why IS NOT NULL)),
	CHECK ((old_secret IS NULL) = (old_until IS NULL))
);

-- What failed, was too slow, or was asked for by hand; what arrived at once
-- has no row.
CREATE TABLE webhook_deliveries (
	client_id   BYTEA    NOT NULL,
	endpoint_id BYTEA    NOT NULL,
	sequence    BIGINT NOT NULL CHECK (sequence >= 0), -- of the event; of a test the log's end when it was asked for
	kind        TEXT    NOT NULL CHECK (kind = 'event' OR kind = 'redelivery' OR kind = 'replay' OR kind = 'test'),
	id          BYTEA    NOT NULL, -- of the asking; a test's webhook-id
	subject_id  BYTEA    NOT NULL, -- the payment
	status      TEXT    NOT NULL CHECK (status = 'pending' OR status = 'delivered' OR status = 'superseded' OR status = 'exhausted' OR status = 'disabled'),
	attempts    BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
	due_at      BIGINT NOT NULL,
	lease_until BIGINT NOT NULL DEFAULT 0, -- it is being sent, beyond the endpoint's own lease
	created_at  BIGINT NOT NULL,
	updated_at  BIGINT NOT NULL,
	sent_at     BIGINT, -- the last attempt, and what came of it
	sent_url    TEXT,
	took        BIGINT,
	answer_code BIGINT,
	answer_text TEXT,
	problem     TEXT,
	PRIMARY KEY (client_id, endpoint_id, sequence, kind),
	FOREIGN KEY (client_id, endpoint_id) REFERENCES webhook_endpoints (client_id, id),
	CHECK (attempts <= 12 AND (status <> 'pending' OR attempts < 12))
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (client_id, endpoint_id, due_at, sequence) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_subject ON webhook_deliveries (client_id, endpoint_id, subject_id) WHERE status = 'pending';

-- Stretches of the log, each as one row: what happened while the endpoint was
-- disabled, and what is to be sent again.
CREATE TABLE webhook_spans (
	client_id     BYTEA    NOT NULL,
	endpoint_id   BYTEA    NOT NULL,
	id            BYTEA    NOT NULL,
	why           TEXT    NOT NULL CHECK (why = 'disabled' OR why = 'catch_up' OR why = 'replay'),
	from_sequence BIGINT NOT NULL CHECK (from_sequence > 0),
	next_sequence BIGINT NOT NULL, -- the first that is not dealt with
	to_sequence   BIGINT NOT NULL,
	created_at    BIGINT NOT NULL,
	done_at       BIGINT,
	PRIMARY KEY (client_id, endpoint_id, id),
	FOREIGN KEY (client_id, endpoint_id) REFERENCES webhook_endpoints (client_id, id),
	CHECK (from_sequence <= next_sequence AND next_sequence <= to_sequence + 1),
	CHECK ((done_at IS NOT NULL) = (next_sequence = to_sequence + 1))
);

-- What an event tells that is not about a payment: the endpoint as it was.
ALTER TABLE events ADD COLUMN document TEXT;
