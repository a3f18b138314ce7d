-- A new payment is pending: the check says so without a look at the table of
-- moves, whose one row for it every create would have to lock. A foreign key
-- is not held against a null.
ALTER TABLE payments ALTER previous_status DROP DEFAULT, ALTER previous_status DROP NOT NULL,
	ADD CHECK (previous_status IS NOT NULL OR status = 'pending');

-- Where several indexes begin with the client, PostgreSQL may take one that
-- names nothing else of what is asked for, and read all of the client's rows to
-- find one: as long as it was never told how many a client has, or when a
-- client is newer than what it was told. So one index of a table begins with
-- the client, and the others only contain it.
ALTER TABLE payments DROP CONSTRAINT payments_client_id_idempotency_key_key,
	ADD CONSTRAINT payments_key UNIQUE (idempotency_key, client_id);
ALTER TABLE transactions DROP CONSTRAINT transactions_client_id_wallet_id_sequence_key,
	DROP CONSTRAINT transactions_client_id_payment_id_money_in_key,
	ADD CONSTRAINT transactions_sequence UNIQUE (wallet_id, client_id, sequence),
	ADD CONSTRAINT transactions_money_in UNIQUE (payment_id, client_id, money_in);
ALTER TABLE postings DROP CONSTRAINT postings_client_id_payment_id_suspended_key,
	ADD CONSTRAINT postings_suspended UNIQUE (payment_id, client_id, suspended);
