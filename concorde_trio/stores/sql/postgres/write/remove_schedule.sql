delete from /*schema*/schedules where name = %s
