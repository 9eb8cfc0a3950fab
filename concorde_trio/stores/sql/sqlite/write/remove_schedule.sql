delete from schedules where name = ?
