-- rolling
-- An aggregator passes on the receipts of several operators, and each counts its own in each
-- country: two payments of one client may have one receipt. Over all clients, and for the
-- release before, operator_receipts says whose a receipt is.
CREATE UNIQUE INDEX payments_issued ON payments (client_id, provider_reference, connection, method, country) WHERE provider_reference IS NOT NULL;
DROP INDEX payments_receipt;
CREATE UNIQUE INDEX payouts_issued ON payouts (client_id, provider_reference, connection, method, country) WHERE provider_reference IS NOT NULL;
DROP INDEX payouts_receipt;
