-- Sessions that are not there yet; those that are, update_sessions has written.
insert into sessions (name, created_at, updated_at, last_epoch, last_registration, usage, held, messages)
select
    column1, column2, coalesce(column3, column2), column4, column5, coalesce(column6, '{}'), coalesce(column7, 0), column8
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?))
where column1 is not null
on conflict (name) do nothing
