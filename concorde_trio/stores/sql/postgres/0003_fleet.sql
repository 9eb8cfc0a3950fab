-- A fleet: the processes that work on this queue, their leases, who leads, and which run was offered to or taken by whom.
-- A lease stands in a table of its own: renewing it does not wait for what a member writes, and who removes it has ended it.

create table concorde_members (
    id text collate "C" primary key,
    holder text not null, -- which process it is, as JSON
    host text not null,
    pid integer not null,
    url text,
    capacity bigint,
    lease double precision not null,
    writer text not null, -- the beginning of the name of its connection that writes
    state text not null default 'live',
    started_at timestamptz not null default now(),
    ended_at timestamptz,
    constraint member_state check (state in ('live', 'draining', 'left', 'dead')),
    constraint member_ended_at check ((ended_at is not null) = (state in ('left', 'dead')))
);

create index concorde_members_living on concorde_members (started_at) where state in ('live', 'draining');

create table concorde_leases (
    member text collate "C" primary key references concorde_members (id) on delete cascade,
    until timestamptz not null
) with (fillfactor = 50);

-- One row. The epoch stands in concorde_meta, where it grows with each who takes the queue.
create table concorde_leader (
    one integer primary key check (one = 1),
    member text collate "C",
    since timestamptz not null
);

insert into concorde_leader values (1, null, now());

-- A run that may start, from when it is offered until its end is stored with it: nobody has it (member is null), a member
-- executes it, or that member has written how it ended (outcome).
create table concorde_executions (
    run_id text collate "C" primary key references runs (id) on delete cascade,
    position bigint not null,
    epoch bigint not null, -- of the leader that offered it
    offered_at timestamptz not null default now(),
    member text collate "C",
    taken_at double precision,
    stop_reason text,
    stop_state text,
    outcome text,
    error text,
    text text,
    usage text,
    constraint execution_taken_at check ((taken_at is null) = (member is null)),
    constraint execution_outcome check (outcome in ('done', 'failed', 'limited', 'cancelled')),
    constraint execution_outcome_taken check (outcome is null or member is not null),
    constraint execution_stop check ((stop_reason is null) = (stop_state is null))
);

create index concorde_executions_offered on concorde_executions (position) where member is null;
create index concorde_executions_over on concorde_executions (position) where outcome is not null;
create index concorde_executions_by_member on concorde_executions (member) where outcome is null;
