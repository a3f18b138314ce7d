-- rolling
-- What became of the last backup and of the last drill, so that somebody can be
-- told when there has been none for long. kind is backup or drill.
CREATE TABLE backup_results (
	kind TEXT PRIMARY KEY,
	ended_at BIGINT NOT NULL, -- of the last that went well; 0: none has
	taken_at BIGINT NOT NULL, -- the snapshot of that one
	place TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	took_ms BIGINT NOT NULL,
	failed_at BIGINT NOT NULL, -- of the last one, if it failed; 0: it went well
	problem TEXT NOT NULL
);
