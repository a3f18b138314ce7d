-- rolling
-- The generations of the installation's secret that seal. A database without a row has
-- the first one only. The generation in use is the one that was put into use last.
CREATE TABLE seal_generations (
	generation BIGINT NOT NULL PRIMARY KEY CHECK (generation BETWEEN 1 AND 255),
	key_check  BYTEA NOT NULL, -- proves that an instance holds the key
	added_at   BIGINT NOT NULL,
	used_at    BIGINT NOT NULL, -- when it was last put into use; 0: never
	retired_at BIGINT NOT NULL  -- 0: it is not
);

-- What an instance holds, and what it seals with.
ALTER TABLE instances ADD COLUMN generations TEXT NOT NULL DEFAULT '1';
ALTER TABLE instances ADD COLUMN sealing BIGINT NOT NULL DEFAULT 1;
