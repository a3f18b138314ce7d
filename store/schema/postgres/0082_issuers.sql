-- rolling
-- An aggregator passes on the receipts of several operators, and each counts its own in each
-- country: two payments of one client may have one receipt. Over all clients, and for the
-- release before, operator_receipts says whose a receipt is.
CREATE UNIQUE INDEX payments_issued ON payments (client_id, provider_reference, connection, method, country) WHERE provider_reference IS NOT NULL;
CREATE UNIQUE INDEX payouts_issued ON payouts (provider_reference, client_id, connection, method, country) WHERE provider_reference IS NOT NULL;
