insert into concorde_requests (kind, target)
select column1, column2 from (values /*rows*/(?, ?)) where column1 is not null
