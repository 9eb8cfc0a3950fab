-- Give out positions: the last of them, if the first is above all that were given out before.
update /*schema*/concorde_meta set last_position = %s where last_position < %s
