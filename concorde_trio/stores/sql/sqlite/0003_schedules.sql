-- Schedules: which signal is emitted when. A row says how far it is, and is advanced in the commit that emits (SCH-4).

create table concorde_schedules (
    name text primary key not null,
    kind text not null,
    payload text not null,
    cron text,
    zone text,
    at real,
    revision text not null, -- another one whenever it is replaced
    changed_at real not null,
    next_at real, -- null: it is over
    fired_at real,
    signal_id text,
    missed integer not null default 0,
    missed_at real,
    constraint schedule_when check ((cron is null) <> (at is null)),
    constraint schedule_zone check ((zone is null) = (cron is null)),
    constraint schedule_missed check (missed >= 0)
) strict;
