"""Backend for WebPPL programs: WebPPL draws and scores in a Node.js process, and its own kernel moves the chains."""
