"""The viewer: read every word of a run in the browser. `parley view`, or `serve` from Python."""
