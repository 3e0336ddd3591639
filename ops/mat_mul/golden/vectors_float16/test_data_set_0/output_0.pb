
ByJPÉ