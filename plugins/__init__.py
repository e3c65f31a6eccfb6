"""How a search is done: one package per family of algorithms; ``common`` holds what several families share.

Each package has a ``plugin`` module that registers what it offers, by the same hooks as third-party packages.
"""
