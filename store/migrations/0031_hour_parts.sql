-- The parts of busy hours, so that a page deep inside one skips few rows. A part
-- begins after the one before it, or with its hour, and ends with the row created at
-- until. Parts are counted behind the commits that change what they count. A part
-- without open rows never changes. What the others say holds while the parts of
-- their hour add up to the hour's counters.
CREATE TABLE hour_parts (
	client_id BLOB    NOT NULL,
	noun      TEXT    NOT NULL,
	hour      INTEGER NOT NULL,
	until     INTEGER NOT NULL,
	a         TEXT    NOT NULL,
	b         TEXT    NOT NULL,
	n         INTEGER NOT NULL CHECK (n > 0),
	PRIMARY KEY (client_id, noun, hour, until, a, b)
) STRICT, WITHOUT ROWID;
