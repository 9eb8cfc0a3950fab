-- Offers in run order that nobody else is taking: each becomes this member's, and its run is marked as started (RUN-1).
with found as (
    select run_id from /*schema*/concorde_executions where member is null
    order by position limit %s for update skip locked
), taken as (
    update /*schema*/concorde_executions set member = %s, taken_at = %s
    from found
    where concorde_executions.run_id = found.run_id
    returning concorde_executions.run_id, concorde_executions.epoch, concorde_executions.taken_at
)
update /*schema*/runs set state = 'running', started_at = taken.taken_at
from taken
where runs.id = taken.run_id and runs.state = 'pending'
returning
    id, signal_id, signal_seq, position, "index", session, prompt, resources, usage_limit, context, tag, time_limit,
    state, queued_at, started_at, ended_at, error, text, usage,
    (select kind from /*schema*/signals where signals.id = runs.signal_id), taken.epoch
