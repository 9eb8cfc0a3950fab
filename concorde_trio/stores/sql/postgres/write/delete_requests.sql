delete from /*schema*/concorde_requests where id = any(%s::bigint[])
