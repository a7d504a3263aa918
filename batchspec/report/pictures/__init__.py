"""Pictures as SVG inside a page that needs nothing else: no script, no font, no request."""
