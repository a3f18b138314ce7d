-- rolling
-- What the comparison of each operator's statement has left, so that somebody can be told
-- when money is not reconciled, or when no statement was compared for long. Each statement
-- has a row of class 'lines', whose count is how many lines were read, and a row for each
-- class of differences and currency.
CREATE TABLE statement_results (
	connection TEXT NOT NULL,
	from_at BIGINT NOT NULL, -- the time that the statement covers
	to_at BIGINT NOT NULL,
	class TEXT NOT NULL,
	currency TEXT NOT NULL, -- '': nobody says
	compared_at BIGINT NOT NULL,
	count BIGINT NOT NULL,
	minor BIGINT NOT NULL, -- how far both sides lie apart
	PRIMARY KEY (connection, from_at, to_at, class, currency)
);
