-- Runs whose members are asked to stop them; the first reason counts.
update /*schema*/concorde_executions
set stop_reason = new.reason, stop_state = new.state
from unnest(%s::text[], %s::text[], %s::text[]) as new (run_id, reason, state)
where concorde_executions.run_id = new.run_id and concorde_executions.stop_reason is null
