"""The launcher inside Pacenote.app."""
