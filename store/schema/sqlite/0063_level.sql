-- rolling
-- What may be written. A release that brings a new form reads it at once and writes it
-- only after the level was raised, when no older program runs any more.
ALTER TABLE installation ADD COLUMN level INTEGER NOT NULL DEFAULT 1;
