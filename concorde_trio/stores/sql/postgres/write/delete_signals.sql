delete from /*schema*/signals where id = any(%s::text[])
