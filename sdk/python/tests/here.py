"""What a machine may lack."""

import os
import sys
import unittest


def missing(what):
    """Says what cannot be tried here. With TILL_EVERYTHING, as make sdk sets it, that is a failure."""
    if os.environ.get("TILL_EVERYTHING"):
        return AssertionError(what)
    print("not tried:", what, file=sys.stderr)
    return unittest.SkipTest(what)
