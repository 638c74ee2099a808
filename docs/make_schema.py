"""Write docs/metrics.schema.json, the JSON Schema of metrics.json, from its classes: python docs/make_schema.py."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from anaphora.analysis.evidence.evidence import VERSION, Evidence
from anaphora.analysis.results.typed_json import PLAIN_TYPES, Interval, fields_of, has_default, hints_of, options_of
from anaphora.base.files import write_json

SCHEMA = Path(__file__).with_name("metrics.schema.json")


def metrics_schema() -> dict[str, Any]:
    """Return the JSON Schema of metrics.json."""
    schema = json_schema(Evidence, f"metrics.json of anaphora, version {VERSION}: the evidence on one run")
    schema["properties"]["version"] = {"const": VERSION}
    schema["required"].insert(0, "version")
    return schema


def json_schema(kind: type[Any], title: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the input of `from_json`."""
    definitions: dict[str, Any] = {}
    whole = _definition(kind, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    options = options_of(hint)
    if NoneType in options:
        known = [_schema(option, definitions) for option in options if option is not NoneType]
        return {"anyOf": [*known, {"type": "null"}]}
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _definition(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if hint is Interval:
        return {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1], definitions)}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _schema(inner[0], definitions)}
    if origin is tuple:
        many = {"minItems": len(inner), "maxItems": len(inner)}
        return {"type": "array", "prefixItems": [_schema(one, definitions) for one in inner], **many}
    return {"type": PLAIN_TYPES[hint]}


def _definition(kind: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    fields, rest = fields_of(kind)
    hints = hints_of(kind)
    others = False if rest is None else _schema(get_args(hints[rest])[1], definitions)
    return {
        "description": (kind.__doc__ or "").strip().splitlines()[0],
        "type": "object",
        "properties": {name: _schema(hints[name], definitions) for name in fields},
        "required": [name for name, field in fields.items() if not has_default(field)],
        "additionalProperties": others,
    }


if __name__ == "__main__":
    write_json(SCHEMA, metrics_schema())
    sys.stdout.write(f"{SCHEMA}\n")
