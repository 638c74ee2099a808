"""Speed, side by side against peers."""
