-- A link of the audit chain seals all rows since the link before it; how many is
-- kept with it, so that one that is missing between two others shows.
ALTER TABLE audit_chain ADD COLUMN covers BIGINT NOT NULL DEFAULT 1;
