-- The oldest signals settled before a time (STP-5).
select id from /*schema*/signals where settled_at < %s order by settled_at limit %s
