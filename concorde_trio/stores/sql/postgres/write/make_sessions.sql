-- Sessions that are not there yet, empty: another process may make one at the same time. Ordered against deadlocks.
insert into /*schema*/sessions (name, created_at, updated_at)
select new.name, new.at, coalesce(new.saved_at, new.at)
from unnest(%s::text[], %s::double precision[], %s::double precision[]) as new (name, at, saved_at)
order by new.name
on conflict (name) do nothing
