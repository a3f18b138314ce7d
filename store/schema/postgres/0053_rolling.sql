-- rolling
-- Whether a program that does not know a migration may run on it. A migration says so
-- in its first line; earlier ones do not.
ALTER TABLE schema_migrations ADD COLUMN rolling BIGINT NOT NULL DEFAULT 0;
