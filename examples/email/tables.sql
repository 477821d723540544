-- The tables of the example, beside those of Windlass: in the same SQLite file, or in the same database on a server.

CREATE TABLE IF NOT EXISTS users (
    address   TEXT PRIMARY KEY,
    since_ms  BIGINT NOT NULL
);

-- A mail that the SMTP server has accepted. A mailer that finds a mail here does not send it again.
CREATE TABLE IF NOT EXISTS sent_mails (
    message_id  TEXT PRIMARY KEY,
    sent_ms     BIGINT NOT NULL
);
