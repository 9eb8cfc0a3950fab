-- A schedule that is still what it was when somebody looked, and how far it is now.
update concorde_schedules
set
    next_at = ?,
    fired_at = coalesce(?, fired_at),
    missed = missed + ?,
    missed_at = coalesce(?, missed_at)
where name = ? and revision = ? and next_at = ?
