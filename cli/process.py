"""What the process is there for."""

alone = False
"""Whether for one command line, with which it ends; else a program uses the command line's parts."""
