"""A second, smaller model beside the target, which writes drafts."""
