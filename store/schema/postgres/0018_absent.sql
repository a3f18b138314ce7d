-- When the latest "not found" that counts as proof was read: the next one counts
-- only after the settle time. A program that does not know the column counts as
-- before; what it has counted is asked for again.
ALTER TABLE steps ADD COLUMN absent_at BIGINT NOT NULL DEFAULT 0;
