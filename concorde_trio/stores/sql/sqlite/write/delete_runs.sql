delete from runs where signal_id in (select column1 from (values /*rows*/(?)))
