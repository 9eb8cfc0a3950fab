-- Sessions that are there. Null leaves what is stored; the numbers of the lock never go down (LSE-5).
update sessions
set
    updated_at = coalesce(new.column3, sessions.updated_at),
    last_epoch = max(sessions.last_epoch, new.column4),
    last_registration = max(sessions.last_registration, new.column5),
    usage = coalesce(new.column6, sessions.usage),
    held = coalesce(new.column7, sessions.held),
    messages = sessions.messages + new.column8
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?)) as new
where sessions.name = new.column1
