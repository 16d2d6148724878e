"""Whether a value is what a JSON schema says: the words that ours have.

A word that is not known here is an error of the schema, not ignored.  With
`strict` members that a schema does not describe are wrong, too.  A reference
may lead to another file of the same folder.
"""

import json
import os

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "number": (int, float), "null": type(None)}
SILENT = {"$schema", "title", "description", "$defs"}


class Schema:
    def __init__(self, path, strict=False):
        self.folder, self.name = os.path.split(path)
        self.strict, self.files = strict, {}

    def file(self, name):
        if name not in self.files:
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                self.files[name] = json.load(f)
        return self.files[name]

    def faults(self, value):
        """Sentences: where, and what is wrong there."""
        return list(self._faults(self.file(self.name), value, "$"))

    def _faults(self, schema, value, where):
        for word, rule in schema.items():
            if word not in SILENT:
                yield from getattr(self, "_" + word.strip("$"))(
                    rule, value, where, schema)

    def _ref(self, rule, value, where, _):
        name, _, path = rule.partition("#/")
        inside, self.name = self.name, name or self.name
        found = self.file(self.name)
        for key in path.split("/"):
            found = found[key]
        yield from list(self._faults(found, value, where))
        self.name = inside

    def _type(self, rule, value, where, _):
        kinds = [rule] if isinstance(rule, str) else rule
        is_boolean = isinstance(value, bool)
        if not any(isinstance(value, TYPES[kind])
                   and is_boolean == (kind == "boolean") for kind in kinds):
            yield f"{where} is no {rule}, but {value!r}"

    def _const(self, rule, value, where, _):
        if value != rule or type(value) is not type(rule):
            yield f"{where} is not {rule!r}, but {value!r}"

    def _enum(self, rule, value, where, _):
        if value not in rule:
            yield f"{where} is none of {rule}, but {value!r}"

    def _minimum(self, rule, value, where, _):
        if isinstance(value, (int, float)) and value < rule:
            yield f"{where} is less than {rule}: {value!r}"

    def _required(self, rule, value, where, _):
        for name in rule:
            if isinstance(value, dict) and name not in value:
                yield f"{where} lacks {name}"

    def _properties(self, rule, value, where, schema):
        if not isinstance(value, dict):
            return
        for name, member in value.items():
            if name in rule:
                yield from self._faults(rule[name], member, f"{where}.{name}")
            elif self.strict and "additionalProperties" not in schema:
                yield f"{where}.{name} is not described"

    def _additionalProperties(self, rule, value, where, schema):
        if isinstance(value, dict):
            for name in value.keys() - schema.get("properties", {}).keys():
                yield from self._faults(rule, value[name], f"{where}.{name}")

    def _items(self, rule, value, where, _):
        if isinstance(value, list):
            for number, one in enumerate(value):
                yield from self._faults(rule, one, f"{where}[{number}]")
