update /*schema*/schedules set signal_id = %s where name = %s
