"""The timeline of a queue as an SVG drawing, from a played scenario or from stored records."""

from concorde_trio.simulate.timeline.rows import TimelineRow, rows_from_records, rows_from_result
from concorde_trio.simulate.timeline.svg import timeline_svg

__all__ = ["TimelineRow", "rows_from_records", "rows_from_result", "timeline_svg"]
