delete from messages where session in (select column1 from (values /*rows*/(?)))
