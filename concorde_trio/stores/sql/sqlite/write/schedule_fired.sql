update concorde_schedules set signal_id = ? where name = ?
