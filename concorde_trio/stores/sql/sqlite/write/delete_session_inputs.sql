delete from inputs where session in (select column1 from (values /*rows*/(?)))
