"""The viewer: read runs in the browser. `parley view`, or `parley.viewer.server.serve` from Python."""
