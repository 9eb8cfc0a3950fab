-- The ids stored under kinds and keys, with the number of the row that asked.
select asked.column1, signals.id
from (values /*rows*/(?, ?, ?)) as asked
join signals on signals.kind = asked.column2 and signals."key" = asked.column3
where asked.column1 is not null
