-- Sessions make custom tools: writes like those of document stores.
ALTER TABLE write_intents DROP CONSTRAINT write_intents_op_check;
ALTER TABLE write_intents ADD CONSTRAINT write_intents_op_check CHECK (op IN (
    'create', 'update', 'delete', 'deploy', 'upsert',
    'store_create', 'store_fill', 'store_embed', 'store_take', 'store_remove', 'store_delete',
    'tool_create', 'tool_take', 'tool_delete'));

DROP INDEX write_intents_of_creates;
CREATE INDEX write_intents_of_creates ON write_intents (session_id)
    WHERE op IN ('create', 'store_create', 'store_fill', 'tool_create');
