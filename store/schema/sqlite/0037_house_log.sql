-- The house has an audit log of its own, under the zero client.
INSERT INTO client_heads (client_id, last_time, last_event, last_audit) VALUES (zeroblob(16), 0, 0, 0) ON CONFLICT DO NOTHING;
