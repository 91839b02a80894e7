-- Sessions make document stores, and write documents to vector stores: writes like those of flows.
ALTER TABLE write_intents DROP CONSTRAINT write_intents_op_check;
ALTER TABLE write_intents ADD CONSTRAINT write_intents_op_check CHECK (op IN (
    'create', 'update', 'delete', 'deploy', 'store_create', 'store_fill', 'store_embed', 'store_delete', 'upsert'));
