insert into /*schema*/concorde_requests (kind, target)
select new.kind, new.target
from unnest(%s::text[], %s::text[]) with ordinality as new (kind, target, place)
order by new.place
