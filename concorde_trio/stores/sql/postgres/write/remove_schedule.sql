delete from /*schema*/concorde_schedules where name = %s
