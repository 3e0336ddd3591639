
BxJ‡M@QÄO8Q†JHR