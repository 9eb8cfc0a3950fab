delete from sessions where name in (select column1 from (values /*rows*/(?)))
