-- Pages of a kind that is rare among many others. It begins with the kind, so
-- that nobody takes it for a way to find a payment of a client by its id.
CREATE INDEX payments_kind ON payments (method, status, client_id, id);
