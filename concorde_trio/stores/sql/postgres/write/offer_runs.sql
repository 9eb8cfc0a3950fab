-- Runs that may start, for any member to take.
insert into /*schema*/concorde_executions (run_id, position, epoch)
select run_id, position, epoch
from unnest(%s::text[], %s::bigint[], %s::bigint[]) as new (run_id, position, epoch)
