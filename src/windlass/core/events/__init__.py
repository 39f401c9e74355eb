"""Facts: what happened, in the past tense, and how the journal encodes it. Pure."""
