"""What people and machines are shown: functions of the state. Pure."""
