"""What all rooms share: errors, vectors, files, settings, progress and text for a terminal."""
