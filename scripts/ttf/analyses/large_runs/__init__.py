"""Large runs, planner: What can a large run expect?"""
