-- Runs as they are at the end of their first batch: pending, started, or over already.
insert into /*schema*/runs (
    position, id, signal_id, signal_seq, "index", session, prompt, resources, usage_limit, context, tag, time_limit,
    state, queued_at, started_at, ended_at, error, text, usage
)
select
    position, id, signal_id, signal_seq, "index", session, prompt, resources, usage_limit, context, tag, time_limit,
    state, queued_at, started_at, ended_at, error, text, usage
from
    unnest(
        %s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::text[],
        %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::double precision[],
        %s::text[], %s::double precision[], %s::double precision[], %s::double precision[], %s::text[], %s::text[], %s::text[]
    )
    as new (
        position, id, signal_id, signal_seq, "index", session, prompt, resources, usage_limit, context, tag, time_limit,
        state, queued_at, started_at, ended_at, error, text, usage
    )
