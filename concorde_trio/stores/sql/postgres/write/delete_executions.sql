delete from /*schema*/concorde_executions where run_id = any(%s::text[])
