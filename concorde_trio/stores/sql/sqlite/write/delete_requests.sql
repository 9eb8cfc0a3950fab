delete from concorde_requests where id in (select column1 from (values /*rows*/(?)))
