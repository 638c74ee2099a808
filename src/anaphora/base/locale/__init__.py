"""Translation of the interface from the English in the code; zh.po is the Chinese catalogue."""
