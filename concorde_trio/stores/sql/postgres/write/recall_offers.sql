-- Offers that nobody has taken; of these, or all of them (null).
delete from /*schema*/concorde_executions
where member is null and (%s::text[] is null or run_id = any(%s::text[]))
returning run_id
