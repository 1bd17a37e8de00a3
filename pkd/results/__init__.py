"""What a run leaves behind: its record (`run`) and the file that keeps it (`saved`)."""
