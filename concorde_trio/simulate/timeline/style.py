"""How a timeline looks: one style sheet, light and dark. Colours carry no meaning alone: shapes and words do too.

No custom properties: viewers that are not browsers know none. The palette keeps its order of lightness for eyes
that do not tell red from green.
"""

from __future__ import annotations

STYLE = """
svg{max-width:100%;height:auto}
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#24292f;unicode-bidi:isolate}
.page{fill:#fff}
.head{font-size:16px;font-weight:600}
.soft{fill:#656d76}
.lane{fill:#f3f5f8}
.grid{stroke:#d8dee4;stroke-width:1}
.axis{stroke:#8c959f;stroke-width:1}
.name{font-weight:600}
.small{font-size:10.5px}
.in{font-size:10.5px;fill:#fff;font-weight:600}
.in.dark-ink{fill:#2d2200}
.wait{stroke:#8c959f;stroke-width:2.5;stroke-linecap:butt;stroke-dasharray:2 2.5}
.queue{fill:#8c959f;fill-opacity:.45}
.hand{stroke:#57606a;stroke-width:1;stroke-opacity:.55;fill:none}
.done{fill:#1a7f5a}
.failed{fill:#c2352c}
.limited{fill:#e3a008}
.cancelled{fill:#6e7781}
.running{fill:#2f6fd6}
.pending{fill:#8c959f}
.held{fill:url(#ct-hatch);stroke:#8250a8;stroke-width:1}
.hatch{stroke:#8250a8;stroke-width:2;stroke-opacity:.55}
.post{fill:#8250a8}
.mark{stroke:#fff;stroke-width:1.6;fill:none;stroke-linecap:round}
.mark.alone{stroke:#c2352c}
.mark.dark-ink{stroke:#2d2200}
.bar:hover rect,.bar:hover .wait{filter:brightness(1.15)}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.page{fill:#0d1117}
.soft{fill:#9198a1}
.lane{fill:#161b22}
.grid{stroke:#2a313a}
.axis{stroke:#6e7681}
.in{fill:#fff}
.in.dark-ink{fill:#2d2200}
.wait{stroke:#7d8590}
.queue{fill:#7d8590}
.hand{stroke:#9198a1}
.done{fill:#238a63}
.failed{fill:#d9453b}
.limited{fill:#d9a514}
.cancelled{fill:#6e7681}
.running{fill:#3b7de0}
.held{stroke:#a371f7}
.hatch{stroke:#a371f7}
.post{fill:#8957d5}
.mark.alone{stroke:#f0625a}
}
"""

LEGEND = (
    ("waiting", "waiting"),
    ("done", "done"),
    ("failed", "failed"),
    ("limited", "hit its limit"),
    ("cancelled", "cancelled"),
    ("running", "still running"),
    ("held", "ended, locks held"),
    ("post", "post phase"),
)
"""What may be in the legend: the class, and the words."""
