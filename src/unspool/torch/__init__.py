"""PyTorch's names of parameters: read and write a state_dict."""
