-- rolling
-- Receivers' answers that are kept, by age: old ones are cleared.
CREATE INDEX webhook_deliveries_answers ON webhook_deliveries (sent_at) WHERE answer_text IS NOT NULL;
