-- A queue: signals in the order of their seq, the runs made of them, and what operators ask for.
-- Columns carry the names of the records' fields, times are wall-clock seconds, JSON stands as text.
-- Every index that the worker reads by covers what is at hand only, so that neither history nor what waits costs it.

create table signals (
    seq bigint generated always as identity primary key, -- never used again, even when rows are pruned (SIG-3)
    id text collate "C" not null unique,
    kind text collate "C" not null,
    payload text not null,
    state text not null default 'pending',
    phase text,
    emitted_at double precision not null,
    claimed_at double precision,
    settled_at double precision,
    error text,
    "key" text collate "C",
    retry_of text,
    interrupted boolean not null default false,
    holds boolean not null default false,
    constraint signal_state check (state in ('pending', 'processing', 'done', 'failed')),
    constraint signal_phase check (phase in ('handling', 'running', 'posting')),
    constraint signal_phase_set check ((phase is not null) = (state = 'processing')),
    constraint signal_claimed_at check ((claimed_at is not null) = (state <> 'pending')),
    constraint signal_settled_at check ((settled_at is not null) = (state in ('done', 'failed'))),
    constraint signal_error_set check (state <> 'failed' or error is not null),
    constraint signal_error_null check (state not in ('pending', 'done') or error is null),
    constraint signal_error_empty check (error <> '')
);

create unique index signals_by_key on signals (kind, "key") where "key" is not null;
create index signals_pending on signals (seq) where state = 'pending';
create index signals_processing on signals (seq) where state = 'processing';
create index signals_failed on signals (seq) where state = 'failed';
create index signals_settled on signals (settled_at) where settled_at is not null;
create index signals_by_kind on signals (kind, seq);

create table runs (
    position bigint primary key,
    id text collate "C" not null unique,
    signal_id text collate "C" not null references signals (id) on delete cascade,
    signal_seq bigint not null,
    "index" integer not null,
    session text collate "C" not null,
    prompt text not null,
    resources text not null,
    usage_limit bigint,
    context text,
    tag text collate "C",
    time_limit double precision,
    state text not null default 'pending',
    queued_at double precision not null,
    started_at double precision,
    ended_at double precision,
    error text,
    text text,
    usage text,
    constraint run_state check (state in ('pending', 'running', 'done', 'failed', 'limited', 'cancelled')),
    constraint run_started_at_set check (state not in ('running', 'done', 'limited') or started_at is not null),
    constraint run_started_at_null check (state <> 'pending' or started_at is null),
    constraint run_ended_at check ((ended_at is not null) = (state not in ('pending', 'running'))),
    constraint run_error_set check (state not in ('failed', 'limited') or error is not null),
    constraint run_error_null check (state not in ('pending', 'running', 'done') or error is null),
    constraint run_error_empty check (error <> ''),
    constraint run_text_null check (state not in ('pending', 'running') or text is null),
    constraint run_usage_null check (state not in ('pending', 'running') or usage is null),
    constraint run_tag_null check (state in ('pending', 'running') or tag is null) -- TAG-4
);

create unique index runs_by_signal on runs (signal_id, "index");
create index runs_by_session on runs (session, position);
create index runs_pending on runs (position) where state = 'pending';
create index runs_running on runs (position) where state = 'running';
create index runs_failed on runs (position) where state = 'failed';
create index runs_limited on runs (position) where state = 'limited';
create index runs_cancelled on runs (position) where state = 'cancelled';
create index runs_tagged on runs (tag) where tag is not null;

create table concorde_requests (
    id bigint generated always as identity primary key,
    kind text collate "C" not null,
    target text not null,
    constraint request_kind check (kind in ('cancel_run', 'cancel_signal'))
);

-- One row. epoch grows with each worker that takes the queue, owner says who that is, as JSON.
create table concorde_meta (
    one integer primary key check (one = 1),
    schema_version integer not null,
    queue text not null,
    last_position bigint not null,
    epoch bigint not null default 0,
    owner text
) with (fillfactor = 50);

insert into concorde_meta values (1, 1, 'postgres-' || replace(gen_random_uuid()::text, '-', ''), 0);

-- A row for whoever writes: the number of the last transaction it committed, by which one that lost its connection while
-- it committed finds out what became of it. The queue's worker owns; whoever takes the queue from it removes its row, and
-- what it writes after that finds none.
create table concorde_writers (
    writer text collate "C" primary key,
    commits bigint not null,
    owns boolean not null default false,
    used_at timestamptz not null default now()
) with (fillfactor = 50);
