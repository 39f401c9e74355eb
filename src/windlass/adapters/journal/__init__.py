"""What a plan's folder holds: the journal, the inbox, what agents say and do."""
