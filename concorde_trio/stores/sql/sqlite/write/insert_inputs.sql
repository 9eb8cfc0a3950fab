-- Accepted inputs, in the order of the rows, as they are at the end of their first batch.
insert into inputs (id, session, text, at, sender, attachments, prompt, state, signal_id, settled_at)
select column1, column2, column3, column4, column5, column6, column7, column8, column9, column10
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
where column1 is not null
