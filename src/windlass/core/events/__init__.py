"""What happened, in the past tense, and how it is written down. Pure."""
