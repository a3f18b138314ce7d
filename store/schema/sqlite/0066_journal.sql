-- rolling
-- Rows of the journal that are to be made again after a restore. It is not released before.
ALTER TABLE restores ADD COLUMN journal_left INTEGER NOT NULL DEFAULT 0;
