-- Pages of a kind that is rare among many others.
CREATE INDEX payments_kind ON payments (client_id, method, status, id);
