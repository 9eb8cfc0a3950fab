-- Emitted signals, in the order of the rows (SIG-3); one whose kind and key are stored is left out (SIG-7).
insert into signals (id, kind, payload, emitted_at, "key", retry_of)
select column1, column2, column3, column4, column5, column6
from (values /*rows*/(?, ?, ?, ?, ?, ?))
where column1 is not null
on conflict (kind, "key") where "key" is not null do nothing
