-- A link of the audit chain seals all rows since the link before it; how many is
-- part of it, so that one that is missing shows.
ALTER TABLE audit_chain ADD COLUMN covers INTEGER NOT NULL DEFAULT 1;
