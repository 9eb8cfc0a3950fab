delete from /*schema*/messages where session = any(%s::text[])
