-- Give out positions: the last of them, if the first is above all that were given out before.
update concorde_meta set last_position = ?1 where last_position < ?2
