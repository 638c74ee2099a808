"""The atlas: models side by side on the same items, as one offline page."""
