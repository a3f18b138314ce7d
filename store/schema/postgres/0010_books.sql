-- What is written under the lock of a client's head holds up all who write for
-- that client. A foreign key is a query of its own for every line: more than the
-- line itself. One query asks for all lines of a statement; and what they
-- refer to stays, because payments and wallets are never deleted or renamed.
CREATE FUNCTION till_lines_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	-- Written so that each is looked up by its key: of NOT EXISTS the server might
	-- make one walk through a table that it takes for small.
	IF EXISTS (SELECT FROM lines l
		WHERE (SELECT w.id FROM wallets w WHERE w.client_id = l.client_id AND w.id = l.wallet_id) IS NULL
		OR l.payment_id IS NOT NULL AND (SELECT p.id FROM payments p WHERE p.client_id = l.client_id AND p.id = l.payment_id) IS NULL)
	THEN
		RAISE EXCEPTION 'transactions: no such wallet or payment (foreign key constraint)' USING ERRCODE = 'foreign_key_violation';
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER transactions_hold AFTER INSERT ON transactions REFERENCING NEW TABLE AS lines
	FOR EACH STATEMENT EXECUTE FUNCTION till_lines_hold();
CREATE TRIGGER wallets_keep BEFORE DELETE ON wallets FOR EACH ROW EXECUTE FUNCTION till_refuse('rows are kept (foreign key constraint)');
CREATE TRIGGER wallets_fixed BEFORE UPDATE ON wallets FOR EACH ROW
	WHEN (OLD.client_id <> NEW.client_id OR OLD.id <> NEW.id) EXECUTE FUNCTION till_refuse('a fixed column changed (foreign key constraint)');
ALTER TABLE transactions DROP CONSTRAINT transactions_client_id_wallet_id_fkey, DROP CONSTRAINT transactions_client_id_payment_id_fkey;

-- Few postings are in suspense; the others need no place in this index.
ALTER TABLE postings DROP CONSTRAINT postings_suspended;
CREATE UNIQUE INDEX postings_suspended ON postings (payment_id, client_id) WHERE suspended = 1;
