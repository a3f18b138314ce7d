-- Tallies and counters add up as well: the minor units of the wallets' lines, and
-- the milliseconds that approvals took. store/sums.go says of what.
ALTER TABLE tallies ADD COLUMN sum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counters ADD COLUMN sum BIGINT NOT NULL DEFAULT 0;

-- Whose sums are not all there yet: those of the hours before this one are made
-- from the rows, the newest first, behind the commits. The zero client stands
-- for the house, whose counters are the sums over all clients.
CREATE TABLE sum_fills (
	client_id BYTEA PRIMARY KEY,
	before    BIGINT NOT NULL,
	since     BIGINT NOT NULL -- and not those before this one
);
INSERT INTO sum_fills (client_id, before, since) SELECT client_id, 1099511627776, 0 FROM clients;
INSERT INTO sum_fills (client_id, before, since) SELECT decode(repeat('00', 16), 'hex'), 1099511627776, 0 WHERE EXISTS (SELECT 1 FROM clients);
