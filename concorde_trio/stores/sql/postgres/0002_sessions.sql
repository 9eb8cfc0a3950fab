-- Sessions: their rows, their messages, and the ledger of what was said to them.
-- A message is JSON text, beside the columns that it is found by. Nothing that a session does costs time in its history:
-- what it starts from is found from its latest summary on, and what is queued by an index of what is queued only.

create table sessions (
    name text collate "C" primary key,
    created_at double precision not null,
    updated_at double precision not null,
    last_epoch bigint not null default 0, -- never goes down (LSE-5)
    last_registration bigint not null default 0,
    usage text not null default '{}',
    held boolean not null default false,
    messages bigint not null default 0, -- how many it has, so that a list of sessions counts nothing
    constraint session_last_epoch check (last_epoch >= 0),
    constraint session_last_registration check (last_registration >= 0),
    constraint session_messages check (messages >= 0)
);

create index sessions_by_updated on sessions (updated_at, name);

create table messages (
    session text collate "C" not null references sessions (name) on delete cascade,
    seq bigint not null,
    role text not null,
    at double precision not null,
    covers bigint,
    document text not null,
    constraint message_seq_once unique (session, seq),
    constraint message_seq check (seq >= 1),
    constraint message_role check (role in ('user', 'assistant', 'tool', 'summary')),
    constraint message_covers_set check ((covers is not null) = (role = 'summary')),
    constraint message_covers check (covers >= 0 and covers < seq)
);

create index messages_summaries on messages (session, seq) where role = 'summary';

create table inputs (
    number bigint generated always as identity primary key, -- the order in which they were accepted (SES-10)
    id text collate "C" not null unique,
    session text collate "C" not null references sessions (name) on delete cascade,
    text text not null,
    at double precision not null,
    sender text,
    attachments text not null,
    state text not null default 'queued',
    prompt boolean not null default false,
    signal_id text,
    settled_at double precision,
    constraint input_state check (state in ('queued', 'delivered', 'cancelled')),
    constraint input_settled_at check ((settled_at is not null) = (state <> 'queued'))
);

create index inputs_by_session on inputs (session);
create index inputs_queued on inputs (session, number) where state = 'queued';
create index inputs_unsettled on inputs (number) where state = 'queued';
