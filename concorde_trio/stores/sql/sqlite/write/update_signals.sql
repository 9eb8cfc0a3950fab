-- Signals that must be in a state (column2) and, unless null, a phase (column3), and what they become.
update signals
set
    state = new.column4,
    phase = case when new.column4 = 'processing' then coalesce(new.column5, signals.phase) end,
    claimed_at = coalesce(new.column6, signals.claimed_at),
    settled_at = new.column7,
    error = case when new.column4 = 'processing' then coalesce(new.column8, signals.error) else new.column8 end,
    interrupted = max(signals.interrupted, new.column9),
    holds = max(signals.holds, new.column10)
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) as new
where
    signals.id = new.column1
    and signals.state = new.column2
    and signals.phase is coalesce(new.column3, signals.phase)
