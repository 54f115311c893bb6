"""The terminal commands. They print; nothing else in the engine does."""
