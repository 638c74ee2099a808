"""Atlas: an offline page that compares the heads of several models on the same items."""
