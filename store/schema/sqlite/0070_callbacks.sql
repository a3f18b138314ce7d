-- rolling
-- How often an operator called about a payment or payout, first and last: of its step
-- while that exists, and then of the row.
ALTER TABLE steps ADD COLUMN callback_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN last_callback_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN callbacks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN callback_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payments ADD COLUMN last_callback_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payouts ADD COLUMN callbacks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payouts ADD COLUMN callback_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE payouts ADD COLUMN last_callback_at INTEGER NOT NULL DEFAULT 0;
