-- The oldest sessions last saved before a time, but those with a queued input or a run that has not ended (STP-5).
select name from /*schema*/sessions
where
    updated_at < %s
    and not exists (select 1 from /*schema*/inputs where inputs.session = sessions.name and inputs.state = 'queued')
    and name not in (
        select session from /*schema*/runs where state = 'pending'
        union all
        select session from /*schema*/runs where state = 'running'
    )
order by updated_at, name limit %s
