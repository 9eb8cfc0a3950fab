-- Schedules: which signal is emitted when. A row says how far it is, and is advanced in the commit that emits (SCH-4).

create table concorde_schedules (
    name text collate "C" primary key,
    kind text not null,
    payload text not null,
    cron text,
    zone text,
    at double precision,
    revision text not null, -- another one whenever it is replaced
    changed_at double precision not null,
    next_at double precision, -- null: it is over
    fired_at double precision,
    signal_id text,
    missed bigint not null default 0,
    missed_at double precision,
    constraint schedule_when check ((cron is null) <> (at is null)),
    constraint schedule_zone check ((zone is null) = (cron is null)),
    constraint schedule_missed check (missed >= 0)
);
