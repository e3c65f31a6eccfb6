"""The engine: plans the work, carries it out on threads, and commits what stages give."""
