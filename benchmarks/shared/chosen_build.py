"""Import the library from PYTHONPATH, which the finder of an editable install would ignore.

Import this module before ``setwise``.
"""

import sys

sys.meta_path[:] = [f for f in sys.meta_path if "_editable_" not in type(f).__module__]
