"""A report as a page: one HTML file that needs no network, and the same in Markdown.

``contents`` gathers what a page says (``banner``, ``numbers``, ``tables``, ``facts``, ``figures``); ``html`` and
``markdown`` write it down. Names and messages come from users' models: whatever is written is escaped.
"""
