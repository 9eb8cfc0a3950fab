-- Who changes what, written down by the database itself: evidence that no fleet can forge. Run with the schema as search path.

create table audit (
    number bigint generated always as identity primary key,
    at double precision not null default extract(epoch from clock_timestamp()),
    what text not null, -- signal, run, take, outcome
    id text not null,
    before text,
    after text,
    application text not null default current_setting('application_name'),
    member_state text, -- of the member that has the run
    leads boolean not null, -- whether the connection is that of the member that leads
    epoch bigint not null,
    tx bigint not null default txid_current()
);

create function audited(what text, id text, before text, after text, taker text) returns void
language sql set search_path from current as $$
    insert into audit (what, id, before, after, member_state, leads, epoch)
    select
        what, audited.id, before, after,
        (select state from concorde_members where concorde_members.id = taker),
        coalesce(
            (
                select current_setting('application_name') = 'concorde-trio writer ' || substr(member, 1, 12)
                from concorde_leader
            ),
            false
        ),
        (select epoch from concorde_meta)
$$;

create function audit_signal() returns trigger language plpgsql set search_path from current as $$
begin
    if old.state is distinct from new.state then
        perform audited('signal', new.id, old.state, new.state, null);
    end if;
    return new;
end
$$;

create function audit_run() returns trigger language plpgsql set search_path from current as $$
begin
    if old.state is distinct from new.state then
        perform audited(
            'run', new.id, old.state, new.state,
            case when new.state = 'running' then (select member from concorde_executions where run_id = new.id) end
        );
    end if;
    return new;
end
$$;

create function audit_execution() returns trigger language plpgsql set search_path from current as $$
begin
    if old.member is distinct from new.member then
        perform audited('take', new.run_id, old.member, new.member, new.member);
    end if;
    if old.outcome is distinct from new.outcome then
        perform audited('outcome', new.run_id, old.outcome, new.outcome, new.member);
    end if;
    return new;
end
$$;

create trigger audit_signals after update of state on signals for each row execute function audit_signal();
create trigger audit_runs after update of state on runs for each row execute function audit_run();
create trigger audit_executions after update on concorde_executions for each row execute function audit_execution();
