"""Maps over the fields of many images: tasks of one image, and the table of all results."""
