delete from /*schema*/sessions where name = any(%s::text[])
