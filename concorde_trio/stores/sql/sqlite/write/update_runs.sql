-- Runs that must not have ended, and be in one state (column2) unless it is null, and what they become.
update runs
set
    state = new.column3,
    started_at = coalesce(new.column4, runs.started_at),
    ended_at = new.column5,
    error = new.column6,
    text = new.column7,
    usage = new.column8,
    prompt = coalesce(new.column9, runs.prompt),
    context = coalesce(new.column10, runs.context),
    tag = case when new.column3 = 'running' then runs.tag end
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) as new
where
    runs.id = new.column1
    and runs.state in ('pending', 'running')
    and runs.state = coalesce(new.column2, runs.state)
