-- Nobody adds an input to these until this transaction is over, for an input refers to its session.
select name from /*schema*/sessions where name = any(%s::text[]) order by name for update
