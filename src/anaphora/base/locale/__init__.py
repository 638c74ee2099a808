"""Translation of the interface; zh.po is the Chinese catalogue."""
