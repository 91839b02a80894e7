-- What a version holds of the flow's settings: `fullFileUpload`, or {} where the flow had none. NULL for older versions.

ALTER TABLE flow_versions ADD COLUMN settings jsonb;
