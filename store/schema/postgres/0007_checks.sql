-- What payments must never be, said by a function instead of twelve checks.
-- Whenever a statement writes to a table, PostgreSQL reads the stored form of
-- each of its checks and plans it: for a single payment that cost a fifth of the
-- whole create. A function is read once in a session. It refuses the same.
CREATE FUNCTION till_payment_holds(idempotency_key BYTEA, body_hash BYTEA, amount BIGINT, fee BIGINT, attention BIGINT,
	created_at BIGINT, updated_at BIGINT, previous_status TEXT, status TEXT, failure_reason TEXT,
	processing_event BIGINT, final_event BIGINT, late_event BIGINT, reversed_event BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN length(idempotency_key) = 16
		AND length(body_hash) = 32
		AND amount > 0
		AND fee >= 0 AND fee <= amount
		AND (attention = 0 OR attention = 1)
		AND updated_at >= created_at
		AND (previous_status IS NOT NULL OR status = 'pending')
		AND (status = 'success' OR status = 'failed' OR status = 'expired') = (final_event IS NOT NULL)
		AND (status <> 'processing' OR processing_event IS NOT NULL)
		AND (status = 'failed' OR status = 'expired') = (failure_reason IS NOT NULL)
		AND (late_event IS NULL OR status = 'failed' OR status = 'expired')
		AND (reversed_event IS NULL OR status = 'success' OR late_event IS NOT NULL);
END $$;

-- The rows that are there were held to the same; they need not be read again.
ALTER TABLE payments
	DROP CONSTRAINT payments_idempotency_key_check, DROP CONSTRAINT payments_body_hash_check,
	DROP CONSTRAINT payments_amount_check, DROP CONSTRAINT payments_attention_check,
	DROP CONSTRAINT payments_check, DROP CONSTRAINT payments_check1, DROP CONSTRAINT payments_check2, DROP CONSTRAINT payments_check3,
	DROP CONSTRAINT payments_check4, DROP CONSTRAINT payments_check5, DROP CONSTRAINT payments_check6, DROP CONSTRAINT payments_check7,
	ADD CONSTRAINT payments_holds CHECK (till_payment_holds(idempotency_key, body_hash, amount, fee, attention, created_at, updated_at,
		previous_status, status, failure_reason, processing_event, final_event, late_event, reversed_event)) NOT VALID;
