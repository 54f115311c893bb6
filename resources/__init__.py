"""What ships beside the code."""
