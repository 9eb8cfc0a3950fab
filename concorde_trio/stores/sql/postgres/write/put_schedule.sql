-- A schedule, new or in the place of another one of its name; one that says the same stays as it is (SCH-5).
insert into /*schema*/concorde_schedules (name, kind, payload, cron, zone, at, revision, changed_at, next_at)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict (name) do update
set
    kind = excluded.kind,
    payload = excluded.payload,
    cron = excluded.cron,
    zone = excluded.zone,
    at = excluded.at,
    revision = excluded.revision,
    changed_at = excluded.changed_at,
    next_at = excluded.next_at,
    fired_at = null,
    signal_id = null,
    missed = 0,
    missed_at = null
where
    concorde_schedules.kind <> excluded.kind
    or concorde_schedules.payload <> excluded.payload
    or concorde_schedules.cron is distinct from excluded.cron
    or concorde_schedules.zone is distinct from excluded.zone
    or concorde_schedules.at is distinct from excluded.at
