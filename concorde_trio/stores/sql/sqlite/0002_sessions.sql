-- Sessions: their rows, their messages, and the ledger of what was said to them.
-- A message is JSON text, beside the columns that it is found by. Nothing that a session does costs time in its history:
-- what it starts from is found from its latest summary on, and what is queued by an index of what is queued only.

create table sessions (
    name text primary key not null,
    created_at real not null,
    updated_at real not null,
    last_epoch integer not null default 0, -- never goes down (LSE-5)
    last_registration integer not null default 0,
    usage text not null default '{}',
    held integer not null default 0,
    messages integer not null default 0, -- how many it has, so that a list of sessions counts nothing
    constraint session_last_epoch check (last_epoch >= 0),
    constraint session_last_registration check (last_registration >= 0),
    constraint session_held check (held in (0, 1)),
    constraint session_messages check (messages >= 0)
) strict;

create index sessions_by_updated on sessions (updated_at, name);

create table messages (
    session text not null references sessions (name) on delete cascade,
    seq integer not null,
    role text not null,
    at real not null,
    covers integer,
    document text not null,
    constraint message_seq_once unique (session, seq),
    constraint message_seq check (seq >= 1),
    constraint message_role check (role in ('user', 'assistant', 'tool', 'summary')),
    constraint message_covers_set check ((covers is not null) = (role = 'summary')),
    constraint message_covers check (covers >= 0 and covers < seq)
) strict;

create index messages_summaries on messages (session, seq) where role = 'summary';

create table inputs (
    number integer primary key autoincrement, -- the order in which they were accepted (SES-10)
    id text not null unique,
    session text not null references sessions (name) on delete cascade,
    text text not null,
    at real not null,
    sender text,
    attachments text not null,
    state text not null default 'queued',
    prompt integer not null default 0,
    signal_id text,
    settled_at real,
    constraint input_state check (state in ('queued', 'delivered', 'cancelled')),
    constraint input_settled_at check ((settled_at is not null) = (state <> 'queued')),
    constraint input_prompt check (prompt in (0, 1))
) strict;

create index inputs_by_session on inputs (session);
create index inputs_queued on inputs (session, number) where state = 'queued';
create index inputs_unsettled on inputs (number) where state = 'queued';
