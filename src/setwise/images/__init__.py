"""Images: from an image with scribbles to a field, from labels to a picture, and files of both."""

from setwise.images._field import FieldOptions, field_from_image
from setwise.images._files import read, write
from setwise.images._segment import segment

__all__ = ["FieldOptions", "field_from_image", "read", "segment", "write"]
