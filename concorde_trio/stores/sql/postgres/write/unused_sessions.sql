-- Of the sessions that are locked: those that nobody has used since they were found.
select name from /*schema*/sessions
where
    name = any(%s::text[])
    and updated_at < %s
    and not exists (select 1 from /*schema*/inputs where inputs.session = sessions.name and inputs.state = 'queued')
