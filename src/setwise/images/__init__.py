"""Images: from an image with scribbles to a field, and from labels to a picture."""

from setwise.images._field import FieldOptions, field_from_image
from setwise.images._segment import segment

__all__ = ["FieldOptions", "field_from_image", "segment"]
