"""Conversation list, transcript and composer."""
