"""From an image and what somebody says of it to a field, and from its labels to a picture."""

from setwise.images._field import field_from_image
from setwise.images._segment import Segmentation, segment

__all__ = ["Segmentation", "field_from_image", "segment"]
