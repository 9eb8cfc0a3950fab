-- Runs as they are at the end of their first batch: pending, started, or over already.
insert into runs (
    position, id, signal_id, signal_seq, "index", session, prompt, resources, usage_limit, context, tag, time_limit,
    state, queued_at, started_at, ended_at, error, text, usage
)
select
    column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
    column13, column14, column15, column16, column17, column18, column19
from (values /*rows*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
where column1 is not null
