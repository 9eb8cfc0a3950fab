delete from /*schema*/runs where signal_id = any(%s::text[])
