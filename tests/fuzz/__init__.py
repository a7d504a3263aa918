"""Hostile input: every reader is fed what strangers could send; see ``targets`` for what each must hold."""
