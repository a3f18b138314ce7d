-- What the counters do not know yet: one row for an hour and a kind, moved in the
-- commit that moves what it counts, instead of four. Negative where more
-- left a kind than came to it. Who counts adds both; an hour
-- after the hour is over, its tallies go into the counters.
CREATE TABLE tallies (
	client_id BYTEA    NOT NULL,
	noun      TEXT    NOT NULL,
	hour      BIGINT NOT NULL,
	a         TEXT    NOT NULL,
	b         TEXT    NOT NULL,
	n         BIGINT NOT NULL,
	PRIMARY KEY (client_id, noun, hour, a, b)
);
