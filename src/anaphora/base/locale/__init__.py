"""Translation of English sentences in the code to the interface's language; zh.po has the Chinese."""
