-- Inputs that must be queued, and what they become; a null signal leaves the one that is stored.
update /*schema*/inputs
set
    state = new.state,
    signal_id = coalesce(new.signal_id, inputs.signal_id),
    settled_at = new.settled_at
from unnest(%s::text[], %s::text[], %s::text[], %s::double precision[]) as new (id, state, signal_id, settled_at)
where inputs.id = new.id and inputs.state = 'queued'
