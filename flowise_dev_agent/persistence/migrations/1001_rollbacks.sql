-- A rollback is announced as a whole, with who asked for it: another process finishes what a lost one left.
ALTER TABLE write_intents ADD COLUMN caller jsonb, ADD COLUMN base_date text;
ALTER TABLE write_intents DROP CONSTRAINT write_intents_op_check;
ALTER TABLE write_intents ADD CONSTRAINT write_intents_op_check CHECK (op IN (
    'create', 'update', 'delete', 'deploy', 'upsert', 'rollback',
    'store_create', 'store_fill', 'store_embed', 'store_take', 'store_remove', 'store_delete',
    'tool_create', 'tool_take', 'tool_delete'));

CREATE INDEX write_intents_of_rollbacks ON write_intents (updated_at) WHERE op = 'rollback' AND status = 'open';
