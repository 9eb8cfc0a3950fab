delete from /*schema*/inputs where session = any(%s::text[])
