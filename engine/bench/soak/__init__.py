"""Random chats, every reply compared with a cold replay of its schedule. `python -m engine.bench.soak --help`."""
