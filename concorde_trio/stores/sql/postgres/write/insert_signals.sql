-- Emitted signals, in the order of the rows (SIG-3); one whose kind and key are stored is left out (SIG-7).
insert into /*schema*/signals (id, kind, payload, emitted_at, "key", retry_of)
select new.id, new.kind, new.payload, new.emitted_at, new."key", new.retry_of
from
    unnest(%s::text[], %s::text[], %s::text[], %s::double precision[], %s::text[], %s::text[]) with ordinality
    as new (id, kind, payload, emitted_at, "key", retry_of, place)
order by new.place
on conflict (kind, "key") where "key" is not null do nothing
