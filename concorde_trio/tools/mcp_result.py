"""What an MCP server answered, as text for a model. The law: text is given as it is; everything else is described in words."""

from __future__ import annotations

import json

from mcp import types

from concorde_trio.sessions.tool import ExecKind


def result_text(result: types.CallToolResult) -> str:
    """The texts, and what else came, in order, a line between them; the structured content if there is no text."""
    parts = [_described(block) for block in result.content]
    has_text = any(isinstance(block, types.TextContent) and block.text for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.insert(0, json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(part for part in parts if part)


def kind_of(annotations: types.ToolAnnotations | None) -> ExecKind:
    """SES-18: what a tool's own hints say; execute when they say nothing."""
    if annotations is not None and annotations.read_only_hint:
        return "read"
    if annotations is not None and annotations.open_world_hint:
        return "network"
    return "execute"


def _described(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(data=data, mime_type=kind):
            return f"[an image, {kind}, {_size(data)}, not shown]"
        case types.AudioContent(data=data, mime_type=kind):
            return f"[a sound, {kind}, {_size(data)}, not played]"
        case types.ResourceLink(name=name, uri=uri, description=about):
            return f"[a link to the resource {name!r}: {uri}{f'; {about}' if about else ''}]"
        case types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, text=text)):
            return f"[the resource {uri}]\n{text}"
        case types.EmbeddedResource(resource=types.BlobResourceContents(uri=uri, blob=data, mime_type=kind)):
            return f"[the resource {uri}, {kind or 'of no stated type'}, {_size(data)}, not shown]"
    return f"[content of the type {getattr(block, 'type', '?')!r}, not shown]"


def _size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"
