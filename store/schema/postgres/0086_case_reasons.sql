-- rolling
-- Why a case was opened, and closed: a code, and the values of its sentence, one per line. The
-- sentence stays beside it. Releases before write only the sentence, so a code is read only
-- where the sentence is the code's.
ALTER TABLE cases ADD COLUMN detail_code TEXT;
ALTER TABLE cases ADD COLUMN detail_values TEXT;
ALTER TABLE cases ADD COLUMN reason_code TEXT;
ALTER TABLE cases ADD COLUMN reason_values TEXT;
