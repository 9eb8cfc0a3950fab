-- How runs ended, written by the member that executes them, once each; the others are left as they are.
update /*schema*/concorde_executions
set outcome = new.outcome, error = new.error, text = new.text, usage = new.usage
from unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    as new (run_id, member, outcome, error, text, usage)
where
    concorde_executions.run_id = new.run_id
    and concorde_executions.member = new.member
    and concorde_executions.outcome is null
returning concorde_executions.run_id
