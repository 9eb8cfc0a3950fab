-- Signals that must be in a state (from_state) and, unless null, a phase (from_phase), and what they become.
update /*schema*/signals
set
    state = new.state,
    phase = case when new.state = 'processing' then coalesce(new.phase, signals.phase) end,
    claimed_at = coalesce(new.claimed_at, signals.claimed_at),
    settled_at = new.settled_at,
    error = case when new.state = 'processing' then coalesce(new.error, signals.error) else new.error end,
    interrupted = signals.interrupted or new.interrupted = 1,
    holds = signals.holds or new.holds = 1
from
    unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::double precision[], %s::double precision[], %s::text[], %s::bigint[], %s::bigint[])
    as new (id, from_state, from_phase, state, phase, claimed_at, settled_at, error, interrupted, holds)
where
    signals.id = new.id
    and signals.state = new.from_state
    and signals.phase is not distinct from coalesce(new.from_phase, signals.phase)
