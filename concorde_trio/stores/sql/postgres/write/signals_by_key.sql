-- The ids stored under kinds and keys, with the number of the row that asked.
select asked.number, signals.id
from unnest(%s::bigint[], %s::text[], %s::text[]) as asked (number, kind, "key")
join /*schema*/signals on signals.kind = asked.kind and signals."key" = asked."key"
