"""The chunk objects that a streaming server sends."""
