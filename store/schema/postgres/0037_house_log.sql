-- The house has an audit log of its own, under the zero client.
INSERT INTO client_heads (client_id, last_time, last_event, last_audit) VALUES (decode(repeat('00', 16), 'hex'), 0, 0, 0) ON CONFLICT DO NOTHING;
