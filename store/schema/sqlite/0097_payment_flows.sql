-- rolling
-- What a payment has that is not approved by a prompt: the one-time code that the customer gave,
-- sealed, until the operator has answered; the address that the customer goes to, until the payment
-- ends; and the number of the event that told of it. Older programs make no such payment: the level
-- does not allow it.
CREATE TABLE payment_flows (
	client_id  BLOB NOT NULL,
	payment_id BLOB NOT NULL,
	code       BLOB,
	next_url   TEXT,
	next_until INTEGER,            -- NULL: the operator does not say
	event      INTEGER CHECK (event > 0),
	PRIMARY KEY (client_id, payment_id)
) STRICT;

-- The first address that is told stays, and a code does not come back.
CREATE TRIGGER payment_flows_fixed BEFORE UPDATE ON payment_flows
WHEN OLD.client_id <> NEW.client_id OR OLD.payment_id <> NEW.payment_id
	OR NEW.code IS NOT NULL AND OLD.code IS NOT NEW.code
	OR OLD.event IS NOT NULL AND (OLD.event IS NOT NEW.event OR NEW.next_url IS NOT NULL AND OLD.next_url IS NOT NEW.next_url)
	OR NEW.next_url IS NOT NULL AND NEW.event IS NULL
BEGIN SELECT RAISE(ABORT, 'payment_flows: a fixed column changed'); END;
