-- Fails a write that did not find all of its rows. The COMMIT goes out together
-- with the write, so the server itself has to say that a row is missing.
CREATE FUNCTION till_expect_rows(changed BIGINT, wanted BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
	IF changed IS DISTINCT FROM wanted THEN
		RAISE EXCEPTION '% rows changed, % expected', changed, wanted USING ERRCODE = 'TL001';
	END IF;
	RETURN changed;
END $$;
