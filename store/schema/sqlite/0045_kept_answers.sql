-- Whether what arrives at once leaves a row with its answer, too. Of test clients
-- it does: their developers look at what their receiver said. Of live ones it
-- does not, because that would be a row for each event and endpoint.
ALTER TABLE webhook_endpoints ADD COLUMN keeps_answers INTEGER NOT NULL DEFAULT 0;

UPDATE webhook_endpoints SET keeps_answers = 1 WHERE client_id IN (SELECT client_id FROM clients WHERE mode = 'test');
