-- A payment's first move, to processing, changes no column that an index has,
-- and finds room in its page: PostgreSQL then writes the row and no index at all.
-- Before, each move made a new entry in every index of the table, and the moves
-- of payments were a third of the database's work for a whole life. The index of
-- kinds knows how a payment has ended; the few that are open share one stretch of
-- it.
ALTER TABLE payments ADD COLUMN ended TEXT NOT NULL GENERATED ALWAYS AS (CASE WHEN final_event IS NULL THEN '' ELSE status END) STORED;
DROP INDEX payments_kind;
CREATE INDEX payments_kind ON payments (method, ended, client_id, id);

-- Room for a second version of each row. Of what is there already nothing moves.
ALTER TABLE payments SET (fillfactor = 50);

-- The same for the answer to a send, which is written into its attempt, and for
-- the lease of a step. Steps are few and gone soon.
ALTER TABLE attempts SET (fillfactor = 50);
ALTER TABLE steps SET (fillfactor = 40);
