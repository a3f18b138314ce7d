-- Old databases that were put back. One that is not released yet holds new
-- payouts, and first sends to operators that would not notice a second one.
CREATE TABLE restores (
	restored_at      INTEGER NOT NULL PRIMARY KEY,
	lost_from        INTEGER NOT NULL, -- what was written from then on is lost
	restored_by      TEXT    NOT NULL,
	log_id           BLOB    NOT NULL, -- of the event logs since
	keys_reviewed_at INTEGER,
	released_at      INTEGER,          -- null: what is lost is not explained yet
	released_by      TEXT
) STRICT, WITHOUT ROWID;

-- Why no new payouts are taken: of one client, or of all, whose id is then
-- sixteen zero bytes. Each cause has its row, and what one has held another does
-- not release.
CREATE TABLE payout_holds (
	client_id BLOB    NOT NULL,
	cause     TEXT    NOT NULL,
	held_at   INTEGER NOT NULL,
	held_by   TEXT    NOT NULL,
	PRIMARY KEY (client_id, cause)
) STRICT, WITHOUT ROWID;

-- The step was open when an old database was put back: what became of it since
-- the backup is not known here, so it is asked about and never sent.
ALTER TABLE steps ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
