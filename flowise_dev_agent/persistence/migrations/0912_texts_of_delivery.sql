-- Codes of the texts in its other columns, for languages other than English.
ALTER TABLE webhook_deliveries ADD COLUMN texts jsonb NOT NULL DEFAULT '{}';
