-- When the event at an endpoint's cursor was made, as it was sent. A failover
-- that lost commits gives sequences out a second time; then the event that the
-- log has there is another one, and 'till verify' says so.
ALTER TABLE webhook_endpoints ADD COLUMN cursor_at BIGINT;
