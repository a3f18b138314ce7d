-- A new payment is pending: the check says so without a look at the table of
-- moves, whose one row for it every create would have to lock. A foreign key
-- is not held against a null.
ALTER TABLE payments ALTER previous_status DROP DEFAULT, ALTER previous_status DROP NOT NULL,
	ADD CHECK (previous_status IS NOT NULL OR status = 'pending');
