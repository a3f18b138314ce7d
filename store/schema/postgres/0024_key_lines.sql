-- Where a key comes from: the key that asked for it, and the key whose place it
-- takes. Both are NULL for keys made by a command, and for those made before.
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
ALTER TABLE api_keys ADD COLUMN replaces TEXT;
CREATE INDEX api_keys_made_by ON api_keys (client_id, made_by) WHERE made_by IS NOT NULL;
CREATE INDEX api_keys_replaces ON api_keys (client_id, replaces) WHERE replaces IS NOT NULL;
