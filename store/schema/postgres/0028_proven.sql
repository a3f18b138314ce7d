-- How many times an endpoint has answered 2xx since it got its address, up to
-- as many as prove it: until then it is sent one event at a time. Those that have
-- taken something before this are proven.
ALTER TABLE webhook_endpoints ADD COLUMN answered BIGINT NOT NULL DEFAULT 0;

UPDATE webhook_endpoints SET answered = 5 WHERE last_success_at IS NOT NULL;
