-- Which moves a payment may make, said by the function that holds it to the
-- rest. As a foreign key each move was looked up in the table of moves, by a
-- query of its own for every row that was written, and the row found there was
-- locked. The table stays: it says the same, to whoever reads it.
CREATE OR REPLACE FUNCTION till_payment_holds(idempotency_key BYTEA, body_hash BYTEA, amount BIGINT, fee BIGINT, attention BIGINT,
	created_at BIGINT, updated_at BIGINT, previous_status TEXT, status TEXT, failure_reason TEXT,
	processing_event BIGINT, final_event BIGINT, late_event BIGINT, reversed_event BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN length(idempotency_key) = 16
		AND length(body_hash) = 32
		AND amount > 0
		AND fee >= 0 AND fee <= amount
		AND (attention = 0 OR attention = 1)
		AND updated_at >= created_at
		AND CASE previous_status
			WHEN 'pending' THEN status = 'processing' OR status = 'success' OR status = 'failed' OR status = 'expired'
			WHEN 'processing' THEN status = 'success' OR status = 'failed' OR status = 'expired'
			ELSE status = 'pending' AND coalesce(previous_status, '') = ''
		END
		AND (status = 'success' OR status = 'failed' OR status = 'expired') = (final_event IS NOT NULL)
		AND (status <> 'processing' OR processing_event IS NOT NULL)
		AND (status = 'failed' OR status = 'expired') = (failure_reason IS NOT NULL)
		AND (late_event IS NULL OR status = 'failed' OR status = 'expired')
		AND (reversed_event IS NULL OR status = 'success' OR late_event IS NOT NULL);
END $$;

ALTER TABLE payments DROP CONSTRAINT payments_previous_status_status_fkey;
