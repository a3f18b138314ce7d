-- rolling
-- What came of a call, as with 0086. In a commit of its own: what has read cases and then
-- reads attempts would wait for this lock, and it for that.
ALTER TABLE attempts ADD COLUMN detail_code TEXT;
ALTER TABLE attempts ADD COLUMN detail_values TEXT;
