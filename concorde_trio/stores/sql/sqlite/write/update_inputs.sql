-- Inputs that must be queued, and what they become; a null signal leaves the one that is stored.
update inputs
set
    state = new.column2,
    signal_id = coalesce(new.column3, inputs.signal_id),
    settled_at = new.column4
from (values /*rows*/(?, ?, ?, ?)) as new
where inputs.id = new.column1 and inputs.state = 'queued'
