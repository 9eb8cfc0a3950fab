-- The oldest signals settled before a time (STP-5).
select id from signals where settled_at < ? order by settled_at limit ?
