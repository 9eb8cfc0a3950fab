insert into messages (session, seq, role, at, covers, document)
select column1, column2, column3, column4, column5, column6
from (values /*rows*/(?, ?, ?, ?, ?, ?))
where column1 is not null
