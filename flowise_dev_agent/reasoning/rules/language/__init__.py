"""What the words of a language mean, and small tools for reading text."""
