-- A schedule that is still what it was when somebody looked, and how far it is now.
update /*schema*/concorde_schedules
set
    next_at = %s,
    fired_at = coalesce(%s, fired_at),
    missed = missed + %s,
    missed_at = coalesce(%s, missed_at)
where name = %s and revision = %s and next_at = %s
