"""What a message's content-type says."""

from __future__ import annotations


def parse_content_type(content_type: str | None) -> tuple[str, str]:
    """The media type and the charset, in small letters; ``utf-8`` where no charset is named."""
    media_type, *parameters = (content_type or "").split(";")
    charset = "utf-8"
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset" and value.strip():
            charset = value.strip().strip('"').lower()
    return media_type.strip().lower(), "utf-8" if charset == "utf8" else charset
