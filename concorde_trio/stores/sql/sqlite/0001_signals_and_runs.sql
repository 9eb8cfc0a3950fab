-- A queue: signals in the order of their seq, the runs made of them, and what operators ask for.
-- Columns carry the names of the records' fields, times are wall-clock seconds, JSON stands as text.
-- Every index that the worker reads by covers what is at hand only, so that neither history nor what waits costs it.

create table signals (
    seq integer primary key autoincrement, -- never used again, even when rows are pruned (SIG-3)
    id text not null unique,
    kind text not null,
    payload text not null,
    state text not null default 'pending',
    phase text,
    emitted_at real not null,
    claimed_at real,
    settled_at real,
    error text,
    "key" text,
    retry_of text,
    interrupted integer not null default 0,
    holds integer not null default 0,
    constraint signal_state check (state in ('pending', 'processing', 'done', 'failed')),
    constraint signal_phase check (phase in ('handling', 'running', 'posting')),
    constraint signal_phase_set check ((phase is not null) = (state = 'processing')),
    constraint signal_claimed_at check ((claimed_at is not null) = (state <> 'pending')),
    constraint signal_settled_at check ((settled_at is not null) = (state in ('done', 'failed'))),
    constraint signal_error_set check (state <> 'failed' or error is not null),
    constraint signal_error_null check (state not in ('pending', 'done') or error is null),
    constraint signal_error_empty check (error <> ''),
    constraint signal_interrupted check (interrupted in (0, 1)),
    constraint signal_holds check (holds in (0, 1))
) strict;

create unique index signals_by_key on signals (kind, "key") where "key" is not null;
create index signals_pending on signals (seq) where state = 'pending';
create index signals_processing on signals (seq) where state = 'processing';
create index signals_failed on signals (seq) where state = 'failed';
create index signals_settled on signals (settled_at) where settled_at is not null;
create index signals_by_kind on signals (kind, seq);

create table runs (
    position integer primary key,
    id text not null unique,
    signal_id text not null references signals (id) on delete cascade,
    signal_seq integer not null,
    "index" integer not null,
    session text not null,
    prompt text not null,
    resources text not null,
    usage_limit integer,
    context text,
    tag text,
    time_limit real,
    state text not null default 'pending',
    queued_at real not null,
    started_at real,
    ended_at real,
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
) strict;

create unique index runs_by_signal on runs (signal_id, "index");
create index runs_by_session on runs (session, position);
create index runs_pending on runs (position) where state = 'pending';
create index runs_running on runs (position) where state = 'running';
create index runs_failed on runs (position) where state = 'failed';
create index runs_limited on runs (position) where state = 'limited';
create index runs_cancelled on runs (position) where state = 'cancelled';
create index runs_tagged on runs (tag) where tag is not null;

create table concorde_requests (
    id integer primary key autoincrement,
    kind text not null,
    target text not null,
    constraint request_kind check (kind in ('cancel_run', 'cancel_signal'))
) strict;

-- One row. Not pragma user_version: that one belongs to the application whose tables may stand beside these.
create table concorde_meta (
    one integer primary key check (one = 1),
    schema_version integer not null,
    queue text not null,
    last_position integer not null
) strict;

insert into concorde_meta values (1, 1, 'sqlite-' || lower(hex(randomblob(16))), 0);
