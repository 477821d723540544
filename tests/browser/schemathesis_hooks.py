"""Each request comes from an address of its own, because ten wrong tokens close the door to an address."""

import itertools

import schemathesis

numbers = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    number = next(numbers)
    case.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
