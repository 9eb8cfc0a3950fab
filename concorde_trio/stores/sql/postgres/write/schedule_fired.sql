update /*schema*/concorde_schedules set signal_id = %s where name = %s
