"""The vendors' servers, played on loopback: each as strict as the vendor documents its own to be.

    with standins()["openai"](kind="thinking") as server:
        client = model(server.name())

`base` has what they share, and the list of them.
"""
