"""What all tests share: one hypothesis profile, without deadlines, which a busy computer misses."""

from hypothesis import settings

settings.register_profile("batchspec", deadline=None, print_blob=True)
settings.load_profile("batchspec")
