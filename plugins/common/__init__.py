"""What several families of algorithms share: matrices, statistics, X-drop extension, culling, masking."""
