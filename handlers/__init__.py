"""The API, the pages and the command line: what people and programs talk to."""
