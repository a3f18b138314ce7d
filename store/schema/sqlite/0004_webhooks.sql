-- Webhook endpoints. The event log is the truth; an endpoint is a cursor into
-- it, so that a hundred thousand events that wait for a dead endpoint are one
-- row here, in the way of nobody.

CREATE TABLE webhook_endpoints (
	client_id       BLOB    NOT NULL,
	id              BLOB    NOT NULL,
	url             TEXT    NOT NULL,
	description     TEXT,
	events          TEXT    NOT NULL, -- kinds separated by spaces, or *
	enabled         INTEGER NOT NULL CHECK (enabled = 0 OR enabled = 1),
	disabled_at     INTEGER,
	disabled_why    TEXT CHECK (disabled_why = 'client' OR disabled_why = 'gone' OR disabled_why = 'failing'),
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	secret          BLOB    NOT NULL, -- sealed
	old_secret      BLOB,             -- sealed; signs too until old_until
	old_until       INTEGER,
	start_sequence  INTEGER NOT NULL CHECK (start_sequence >= 0), -- the log's end when it was made
	listed_from     INTEGER NOT NULL, -- the log's end when its list of kinds last changed
	cursor_sequence INTEGER NOT NULL, -- all up to here is delivered, not subscribed, or in a row
	lease_until     INTEGER NOT NULL DEFAULT 0,
	lease_version   INTEGER NOT NULL DEFAULT 0,
	blocked_until   INTEGER NOT NULL DEFAULT 0, -- nothing is sent before
	next_retry      INTEGER,                    -- the least due_at of its pending rows
	replay_at       INTEGER,                    -- when an open replay goes on
	drain_to        INTEGER NOT NULL DEFAULT 0, -- a backlog up to here is sent at a bounded pace
	failing_since   INTEGER,                    -- the first failure since the last success
	failures        INTEGER NOT NULL DEFAULT 0, -- failures in a row, a burst counted once
	last_success_at INTEGER,
	PRIMARY KEY (client_id, id),
	CHECK (start_sequence <= cursor_sequence AND start_sequence <= listed_from),
	CHECK ((enabled = 0) = (disabled_at IS NOT NULL) AND (enabled = 0) = (disabled_why IS NOT NULL)),
	CHECK ((old_secret IS NULL) = (old_until IS NULL))
) STRICT, WITHOUT ROWID;

-- What failed, was too slow, or was asked for by hand; what arrived at once
-- has no row.
CREATE TABLE webhook_deliveries (
	client_id   BLOB    NOT NULL,
	endpoint_id BLOB    NOT NULL,
	sequence    INTEGER NOT NULL CHECK (sequence >= 0), -- of the event; of a test the log's end when it was asked for
	kind        TEXT    NOT NULL CHECK (kind = 'event' OR kind = 'redelivery' OR kind = 'replay' OR kind = 'test'),
	id          BLOB    NOT NULL, -- of the asking; a test's webhook-id
	subject_id  BLOB    NOT NULL, -- the payment
	status      TEXT    NOT NULL CHECK (status = 'pending' OR status = 'delivered' OR status = 'superseded' OR status = 'exhausted' OR status = 'disabled'),
	attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
	due_at      INTEGER NOT NULL,
	lease_until INTEGER NOT NULL DEFAULT 0, -- it is being sent, beyond the endpoint's own lease
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	sent_at     INTEGER, -- the last attempt, and what came of it
	sent_url    TEXT,
	took        INTEGER,
	answer_code INTEGER,
	answer_text TEXT,
	problem     TEXT,
	PRIMARY KEY (client_id, endpoint_id, sequence, kind),
	FOREIGN KEY (client_id, endpoint_id) REFERENCES webhook_endpoints (client_id, id),
	CHECK (attempts <= 12 AND (status <> 'pending' OR attempts < 12))
) STRICT, WITHOUT ROWID;

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (client_id, endpoint_id, due_at, sequence) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_subject ON webhook_deliveries (client_id, endpoint_id, subject_id) WHERE status = 'pending';

-- Stretches of the log, each as one row: what happened while the endpoint was
-- disabled, and what is to be sent again.
CREATE TABLE webhook_spans (
	client_id     BLOB    NOT NULL,
	endpoint_id   BLOB    NOT NULL,
	id            BLOB    NOT NULL,
	why           TEXT    NOT NULL CHECK (why = 'disabled' OR why = 'catch_up' OR why = 'replay'),
	from_sequence INTEGER NOT NULL CHECK (from_sequence > 0),
	next_sequence INTEGER NOT NULL, -- the first that is not dealt with
	to_sequence   INTEGER NOT NULL,
	created_at    INTEGER NOT NULL,
	done_at       INTEGER,
	PRIMARY KEY (client_id, endpoint_id, id),
	FOREIGN KEY (client_id, endpoint_id) REFERENCES webhook_endpoints (client_id, id),
	CHECK (from_sequence <= next_sequence AND next_sequence <= to_sequence + 1),
	CHECK ((done_at IS NOT NULL) = (next_sequence = to_sequence + 1))
) STRICT, WITHOUT ROWID;

-- What an event tells that is not about a payment: the endpoint as it was.
ALTER TABLE events ADD COLUMN document TEXT;
