-- Runs that must not have ended, and be in one state (needs) unless it is null, and what they become.
update /*schema*/runs
set
    state = new.state,
    started_at = coalesce(new.started_at, runs.started_at),
    ended_at = new.ended_at,
    error = new.error,
    text = new.text,
    usage = new.usage,
    prompt = coalesce(new.prompt, runs.prompt),
    context = coalesce(new.context, runs.context),
    tag = case when new.state = 'running' then runs.tag end
from
    unnest(%s::text[], %s::text[], %s::text[], %s::double precision[], %s::double precision[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
    as new (id, needs, state, started_at, ended_at, error, text, usage, prompt, context)
where
    runs.id = new.id
    and runs.state in ('pending', 'running')
    and runs.state = coalesce(new.needs, runs.state)
