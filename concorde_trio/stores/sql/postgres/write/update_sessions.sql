-- Sessions that are there. Null leaves what is stored; the numbers of the lock never go down (LSE-5).
update /*schema*/sessions
set
    updated_at = coalesce(new.updated_at, sessions.updated_at),
    last_epoch = greatest(sessions.last_epoch, new.last_epoch),
    last_registration = greatest(sessions.last_registration, new.last_registration),
    usage = coalesce(new.usage, sessions.usage),
    held = coalesce(new.held = 1, sessions.held),
    messages = sessions.messages + new.messages
from
    unnest(%s::text[], %s::double precision[], %s::double precision[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::bigint[])
    as new (name, created_at, updated_at, last_epoch, last_registration, usage, held, messages)
where sessions.name = new.name
returning sessions.name
