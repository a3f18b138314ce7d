-- The events that tell that a payment or payout needs a person's attention, and that
-- it no longer does while it is open. Few have any, and one may have several.
CREATE TABLE attention_events (
	client_id  BLOB    NOT NULL,
	subject_id BLOB    NOT NULL,
	sequence   INTEGER NOT NULL,
	PRIMARY KEY (client_id, subject_id, sequence)
) STRICT, WITHOUT ROWID;
