"""Whether a verify block gives the very bytes of single steps here, and what to do when it does not."""
