-- Leases that are over, or that this list names. Whoever renewed one of them at this moment finds no row.
with ended as (
    delete from /*schema*/concorde_leases
    where until < clock_timestamp() or member = any(%s::text[])
    returning member
)
update /*schema*/concorde_members set state = 'dead', ended_at = clock_timestamp()
from ended
where id = ended.member and state in ('live', 'draining')
returning id
