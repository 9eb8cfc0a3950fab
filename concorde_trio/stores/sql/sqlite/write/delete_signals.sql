delete from signals where id in (select column1 from (values /*rows*/(?)))
