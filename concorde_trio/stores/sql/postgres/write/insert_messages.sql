insert into /*schema*/messages (session, seq, role, at, covers, document)
select session, seq, role, at, covers, document
from unnest(%s::text[], %s::bigint[], %s::text[], %s::double precision[], %s::bigint[], %s::text[]) as new (session, seq, role, at, covers, document)
