-- What a person said who holds payouts.
ALTER TABLE payout_holds ADD COLUMN reason TEXT;

-- Since when a step is kept from being sent because payouts are held, or because
-- its client is suspended. A program that does not know the column sends, as
-- before.
ALTER TABLE steps ADD COLUMN held_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX steps_held ON steps (client_id, subject_id) WHERE held_at > 0;

-- The clients that are suspended already.
INSERT INTO payout_holds (client_id, cause, held_at, held_by)
SELECT c.client_id, 'suspended', coalesce((SELECT max(a.at) FROM audit a WHERE a.client_id = c.client_id AND a.action = 'client.suspend'), c.created_at), 'migration'
FROM clients c WHERE c.suspended = 1;
