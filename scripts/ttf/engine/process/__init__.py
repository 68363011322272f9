"""The process of a job: its start, its end on request, its memory, what the machine refuses it."""
