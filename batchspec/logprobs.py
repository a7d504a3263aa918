"""Log probabilities in OpenAI's two shapes."""
