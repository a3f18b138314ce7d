-- The parts of busy hours, so that a page deep inside one skips few rows. A part
-- begins after the one before it, or with its hour, and ends with the row created at
-- until. Its counts are "a b n", separated by commas. They are made behind the
-- commits that change what they count. A part without open rows never changes;
-- the others hold while the parts of their hour add up to the hour's counters.
CREATE TABLE hour_parts (
	client_id BYTEA    NOT NULL,
	noun      TEXT    NOT NULL,
	hour      BIGINT NOT NULL,
	until     BIGINT NOT NULL,
	counts    TEXT    NOT NULL,
	PRIMARY KEY (client_id, noun, hour, until)
);
