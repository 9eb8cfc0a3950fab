-- Who changes what, written down by the database itself: evidence that no fleet can forge. Prepended by the schema's search path.

create table audit (
    number bigint generated always as identity primary key,
    at double precision not null default extract(epoch from clock_timestamp()),
    what text not null, -- signal, run, take
    id text not null,
    before text,
    after text,
    application text not null default current_setting('application_name'),
    writer_state text, -- of the member that writes
    leads boolean not null, -- whether it is the leader's connection, and leads
    epoch bigint not null
);

create function audited(what text, id text, before text, after text) returns void language sql set search_path from current as $$
    insert into audit (what, id, before, after, writer_state, leads, epoch)
    select
        what, id, before, after,
        (
            select state from concorde_members
            where current_setting('application_name') = 'concorde-trio writer ' || writer
        ),
        coalesce(
            (
                select current_setting('application_name') = 'concorde-trio writer ' || substr(member, 1, 12)
                from concorde_leader
            ),
            false
        ),
        (select epoch from concorde_meta)
$$;

create function audit_state() returns trigger language plpgsql set search_path from current as $$
begin
    if old.state is distinct from new.state then
        perform audited(tg_argv[0], new.id, old.state, new.state);
    end if;
    return new;
end
$$;

create function audit_take() returns trigger language plpgsql set search_path from current as $$
begin
    if old.member is distinct from new.member then
        perform audited('take', new.run_id, old.member, new.member);
    end if;
    if old.outcome is distinct from new.outcome then
        perform audited('outcome', new.run_id, old.outcome, new.outcome);
    end if;
    return new;
end
$$;

create trigger audit_signals after update of state on signals for each row execute function audit_state('signal');
create trigger audit_runs after update of state on runs for each row execute function audit_state('run');
create trigger audit_executions after update on concorde_executions for each row execute function audit_take();
