-- How operators stand, what they may be asked, and which lane a step waits in:
-- shared by all instances.
--
-- The tables operator_* have no client_id: an operator is the same for all
-- clients. They hold a handful of rows, written about once a second, and would
-- be reference tables on a distributed engine.

-- What came of calls, summed over ten seconds: never a row per call. Old rows
-- are deleted.
CREATE TABLE operator_health (
	bucket     BIGINT NOT NULL, -- in ten seconds
	connection TEXT    NOT NULL,
	operation  TEXT    NOT NULL,
	known      BIGINT NOT NULL, -- calls that were answered
	unknown    BIGINT NOT NULL, -- calls that were not
	refused    BIGINT NOT NULL, -- of those: our credentials were
	took       BIGINT NOT NULL, -- microseconds, of those that were answered
	PRIMARY KEY (bucket, connection, operation)
);

-- Whether new payments are let through to an operator. A row changes only by
-- compare-and-swap on its version. No row: passing.
CREATE TABLE operator_breakers (
	connection  TEXT    NOT NULL PRIMARY KEY,
	version     BIGINT NOT NULL,
	state       TEXT    NOT NULL CHECK (state = 'passing' OR state = 'stopped' OR state = 'probing'),
	tries       BIGINT NOT NULL, -- how often it was stopped without lasting recovery
	changed_at  BIGINT NOT NULL,
	retry_at    BIGINT NOT NULL, -- when stopped: from then on it may be probed
	round       BIGINT NOT NULL, -- moves on with every permission to probe
	owner       BYTEA    NOT NULL, -- the instance that may let new payments in as probes
	lease_until BIGINT NOT NULL, -- of that permission
	probes_left BIGINT NOT NULL CHECK (probes_left >= 0)
);

-- A token bucket for each kind of call of an operator that limits our rate.
CREATE TABLE operator_budgets (
	connection  TEXT    NOT NULL,
	operation   TEXT    NOT NULL,
	tokens      BIGINT NOT NULL, -- in millionths; under zero: never used, so full
	filled_at   BIGINT NOT NULL, -- when tokens were last added
	held_span   BIGINT NOT NULL, -- the span of time that held counts for
	held        BIGINT NOT NULL, -- whole tokens that instances took ahead in that span
	held_before BIGINT NOT NULL, -- and in the span before it
	PRIMARY KEY (connection, operation)
);

-- A step waits in the lane of its operator and operation, so that one operator
-- that is slow, limited or away hides nothing of the others. A lane is a hint
-- for whoever looks; what a step asks for is decided when it is claimed.
ALTER TABLE steps ADD COLUMN lane TEXT NOT NULL DEFAULT 'unknown';

UPDATE steps SET lane = (
	SELECT p.connection || CASE WHEN steps.sends = 0 AND p.final_event IS NULL THEN ' submit' ELSE ' check' END
	FROM payments p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id)
WHERE EXISTS (SELECT 1 FROM payments p WHERE p.client_id = steps.client_id AND p.id = steps.subject_id);

DROP INDEX steps_due;
CREATE INDEX steps_lane ON steps (lane, due_at);
