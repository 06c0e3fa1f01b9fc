"""The option `methods`, for figures that show some of their runs under given names; `style.methods` finds their rows."""

from __future__ import annotations

PARAMETERS = {
    "methods": {
        "type": "object",
        "names": "methods",
        "additionalProperties": {
            "type": ["string", "null"],
            "pattern": "^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*/lambda=[0-9][0-9.e+-]*$",
        },
        "default": {},
        "description": "label -> <model>/<regularizer>/lambda=<number>, in display order (null: left out); empty: all",
    },
}
