-- The three tables of a Store. Times are milliseconds since 1970, in UTC.
CREATE TABLE IF NOT EXISTS till_outbox (
  idempotency_key VARCHAR(36)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  kind            VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_id        VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attempt         INT          NOT NULL,
  body            MEDIUMBLOB   NOT NULL,
  state           VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  tries           INT          NOT NULL,
  next_at         BIGINT       NOT NULL,
  lease           BIGINT       NOT NULL,
  send_until      BIGINT       NOT NULL,
  remote_id       VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NULL,
  status          VARCHAR(32)  NOT NULL,
  problem         VARCHAR(64)  NOT NULL,
  created_at      BIGINT       NOT NULL,
  details         MEDIUMTEXT   CHARACTER SET utf8mb4 NULL,
  UNIQUE KEY till_outbox_attempt (kind, order_id, attempt),
  UNIQUE KEY till_outbox_remote (remote_id),
  KEY till_outbox_due (state, next_at)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS till_subject (
  subject    VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  `rank`     INT          NOT NULL,
  seen       VARCHAR(255) NOT NULL,
  sequence   BIGINT       NOT NULL,
  updated_at BIGINT       NOT NULL
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS till_cursor (
  name           VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  log_id         VARCHAR(64) NOT NULL,
  after_sequence BIGINT      NOT NULL
) ENGINE=InnoDB;
