-- Accepted inputs, in the order of the rows, as they are at the end of their first batch.
insert into /*schema*/inputs (id, session, text, at, sender, attachments, prompt, state, signal_id, settled_at)
select
    new.id, new.session, new.text, new.at, new.sender, new.attachments, new.prompt = 1, new.state, new.signal_id,
    new.settled_at
from
    unnest(%s::text[], %s::text[], %s::text[], %s::double precision[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::double precision[]) with ordinality
    as new (id, session, text, at, sender, attachments, prompt, state, signal_id, settled_at, place)
order by new.place
