delete from concorde_schedules where name = ?
