"""The vendors' servers, played on loopback: each as strict as the vendor documents its own to be.

    with STANDINS["openai"](kind="thinking") as server:
        client = model(server.name())

`base` has what they share, `asking` the list of them.
"""
