-- rolling
-- What shows that an operator has a request is counted, because clocks are set: how many
-- callbacks had come before the latest send and before the latest read that found nothing,
-- and how many sends left us and were refused by the operator's gateway.
ALTER TABLE steps ADD COLUMN sent_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN absent_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;
