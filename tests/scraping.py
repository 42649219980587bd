"""What Prometheus would read."""

import urllib3


def scraped(port):
    """The figures at a port of this machine, each by its name and labels as written, and the names of what is exported."""
    url = f"http://127.0.0.1:{port}/metrics"
    lines = urllib3.request("GET", url, retries=urllib3.Retry(30, backoff_factor=0.1)).data.decode().splitlines()
    figures = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and line[0] != "#"}
    return figures, {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
