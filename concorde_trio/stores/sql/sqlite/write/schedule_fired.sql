update schedules set signal_id = ? where name = ?
