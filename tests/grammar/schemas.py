"""JSON schemas as people write them, drawn at random; all of them can be satisfied."""

from typing import Any

from hypothesis import strategies as st

__all__ = ["json_schemas"]

Schema = dict[str, Any]

names = st.sampled_from(["name", "id", "tags", "naïve", 'quo"ted', "a b", "x", "\\", "größe", "type"])
patterns = st.sampled_from(
    ["^[a-z]{2,5}$", "^\\d{3}-\\d{2}$", "[AEIOU]", "^(red|green|blue)$", "^v[0-9]+(\\.[0-9]+)?$", "^.{1,4}$"]
)
words = st.sampled_from(["", "a", "Ab c", "Zürich", 'say "hi"', "tab\there", "back\\slash", "new\nline", "😀"])
constants: st.SearchStrategy[Any] = st.one_of(words, st.integers(-50, 50), st.booleans(), st.none())


@st.composite
def strings(draw: st.DrawFn) -> Schema:
    schema: Schema = {"type": "string"}
    if draw(st.integers(0, 3)) == 0:
        return schema | {"pattern": draw(patterns)}
    least = draw(st.none() | st.integers(0, 4))
    most = draw(st.none() | st.integers(least or 0, 8))
    return schema | _given(minLength=least, maxLength=most)


@st.composite
def integers(draw: st.DrawFn) -> Schema:
    least = draw(st.none() | st.integers(-1000, 1000))
    most = draw(st.none() | st.integers(2 if least is None else least + 2, 2500))
    low, high = (
        draw(st.sampled_from(["minimum", "exclusiveMinimum"])),
        draw(st.sampled_from(["maximum", "exclusiveMaximum"])),
    )
    return {"type": "integer"} | _given(**{low: least, high: most})


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    least = draw(st.none() | st.integers(-400, 400).map(lambda quarters: quarters / 4))
    most = draw(st.none() | st.integers(1, 1000).map(lambda eighths: (least or 0) + eighths / 8))
    return {"type": "number"} | _given(minimum=least, maximum=most)


enums = st.lists(constants, min_size=1, max_size=4, unique_by=repr).map(lambda values: {"enum": values})
consts = st.one_of(constants, st.lists(constants, max_size=2), st.dictionaries(names, constants, max_size=2)).map(
    lambda value: {"const": value}
)
atoms: st.SearchStrategy[Schema] = st.one_of(
    strings(),
    integers(),
    numbers(),
    enums,
    consts,
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}]),
    st.sampled_from([{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/node"}]),
)


@st.composite
def arrays(draw: st.DrawFn, items: st.SearchStrategy[Schema]) -> Schema:
    least = draw(st.none() | st.integers(0, 2))
    most = draw(st.none() | st.integers(least or 0, 4))
    return {"type": "array", "items": draw(items)} | _given(minItems=least, maxItems=most)


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(names, values, max_size=4))
    required = [name for name in properties if draw(st.booleans())]
    rest = draw(st.sampled_from([False, False, False, None, {"type": "integer"}, {"type": "boolean"}]))
    return {"type": "object", "properties": properties} | _given(required=required or None, additionalProperties=rest)


def _inside(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(
        objects(inner), arrays(inner), st.lists(inner, min_size=2, max_size=3).map(lambda options: {"anyOf": options})
    )


@st.composite
def json_schemas(draw: st.DrawFn) -> Schema:
    """A schema of the commonly used keywords, with definitions, one of them recursive."""
    body = draw(st.recursive(atoms, _inside, max_leaves=6))
    node = {
        "type": "object",
        "properties": {
            "value": draw(st.one_of(integers(), strings(), enums)),
            "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"$defs": {"leaf": draw(st.one_of(strings(), integers(), enums)), "node": node}} | body


def _given(**keywords: Any) -> Schema:
    return {name: value for name, value in keywords.items() if value is not None}
