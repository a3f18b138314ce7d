-- rolling
-- One refund of a payment is open at a time.
CREATE UNIQUE INDEX payouts_open_refund ON payouts (payment_id, client_id) WHERE payment_id IS NOT NULL AND final_event IS NULL;
CREATE INDEX payouts_of_payment ON payouts (payment_id, client_id, id) WHERE payment_id IS NOT NULL;

-- Lists of payouts and of refunds are as quick as if the other did not exist.
CREATE INDEX payouts_plain ON payouts (client_id, id) WHERE payment_id IS NULL;
CREATE INDEX payouts_refunds ON payouts (client_id, id) WHERE payment_id IS NOT NULL;
CREATE INDEX payouts_plain_kind ON payouts (method, status, client_id, id) WHERE payment_id IS NULL;
CREATE INDEX payouts_refund_kind ON payouts (method, status, client_id, id) WHERE payment_id IS NOT NULL;
