"""The files of a plan's folder: the journal, the inbox, and the agents' activity."""
