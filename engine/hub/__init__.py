"""The Hugging Face Hub: metadata through `huggingface_hub`, bytes through one range client.

In the order data walks through: `connection` (endpoint, token, patience) -> `repo` (what a repo holds) -> `ranges`
(bytes) -> `extract` (a head out of a model's shards). Every refusal ends in a `HubError` that says what to do.
"""
