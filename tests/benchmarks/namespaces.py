"""from-url on a machine with two real interfaces, one to an "internet" and one to an "inside": not one packet may go inside.

Run as root on Linux, where `unshare` and `ip` are: python -m tests.benchmarks.namespaces

The service (API, PostgreSQL, store) runs in a network namespace of its own, the two places in others. The internet has a name
server that lies and changes its mind, and a web server that redirects; the inside answers on every private address. All of it
is gone when the command ends, however it ends: the namespaces live as long as the processes in them.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.benchmarks.place import service as api
from tests.media_samples import image
from tests.names import NameServer
from tests.service import ROOT, Http, Member
from tests.url_corpus import ADDRESSES, CORPUS

WEB, NAMES, WEB6, OWN = "93.184.216.34", "9.9.9.9", "2606:2800:21f::34", "93.184.216.2"
PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "192.0.0.0/24",
           "192.88.99.0/24", "240.0.0.0/4"]
PRIVATE6 = ["fc00::/7", "fec0::/10", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "2001:db8::/32", "3fff::/20",
            "5f00::/16", "100::/64", "4000::/2", "::/96"]
LINK = {"internet": (OWN, "93.184.216.1", 24, "2606:4700:4700::2", "2606:4700:4700::1", 64),
        "inside": ("192.168.255.1", "192.168.255.2", 30, "fd00:ffff::1", "fd00:ffff::2", 126)}
PORTS = (80, 443, 8080, 8443)
TCP, UDP = 6, 17
RESOLV_CONF = f"nameserver {NAMES}\noptions timeout:1 attempts:1\n"


class _Web(BaseHTTPRequestHandler):
    """/to/N redirects to the N-th URL of the corpus; everything else is a picture."""

    def do_GET(self):
        self.server.asked += 1
        redirect, body = self.path.startswith("/to/"), image("PNG")
        self.send_response(302 if redirect else 200)
        if redirect:
            # As servers do that do not encode their URLs; http.server writes Latin-1.
            self.send_header("Location", CORPUS[int(self.path[4:])].encode("utf-8", "replace").decode("latin-1"))
            body = b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Web4(ThreadingHTTPServer):
    daemon_threads, asked = True, 0


class _Web6(_Web4):
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().server_bind()


def web_servers(ports):
    """Web servers on all addresses of this namespace."""
    servers = [kind((host, port), _Web) for port in ports for kind, host in ((_Web4, "0.0.0.0"), (_Web6, "::"))]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return servers


def ip(*arguments):
    """One command of iproute2."""
    subprocess.run(["ip", *arguments], check=True)


class Watch(threading.Thread):
    """Counts the packets of TCP and UDP that come in through an interface, by their destination."""

    def __init__(self, interface):
        super().__init__(daemon=True)
        self.seen = Counter()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self._socket.bind((interface, 3))

    def run(self):
        while True:
            packet, (_, _, kind, *_) = self._socket.recvfrom(65535)
            if kind == socket.PACKET_OUTGOING:
                continue
            if packet[0] >> 4 == 4 and packet[9] in (TCP, UDP):
                self.seen[socket.inet_ntop(socket.AF_INET, packet[16:20])] += 1
            elif packet[0] >> 4 == 6 and packet[6] in (TCP, UDP):
                self.seen[socket.inet_ntop(socket.AF_INET6, packet[24:40])] += 1


def place(name):
    """Runs in a namespace of its own: answers there, and tells what arrived whenever it is asked."""
    print("here", flush=True)
    zone = json.loads(sys.stdin.readline())
    _, v4, bits, _, v6, bits6 = LINK[name]
    ip("link", "set", "lo", "up")
    ip("link", "set", "eth0", "up")
    ip("addr", "add", f"{v4}/{bits}", "dev", "eth0")
    ip("-6", "addr", "add", f"{v6}/{bits6}", "dev", "eth0", "nodad")
    local = [WEB, NAMES, "8.8.8.8", "8.8.4.4", WEB6] if name == "internet" else [*PRIVATE, *PRIVATE6]
    for block in local:
        ip(*(["-6"] if ":" in block else []), "route", "add", "local", block, "dev", "lo", "table", "main")
    watch = Watch("eth0")
    watch.start()
    servers = web_servers(PORTS)
    if zone:
        NameServer(NAMES, 53).zone = zone
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps({"packets": watch.seen, "asked": sum(server.asked for server in servers)}), flush=True)


class Place:
    """What runs in another namespace, seen from here."""

    def __init__(self, name, zone):
        command = ["unshare", "--net", sys.executable, "-m", "tests.benchmarks.namespaces", "--place", name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self._process.stdout.readline() == "here\n"
        v4, gateway, bits, v6, gateway6, bits6 = LINK[name]
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(self._process.pid))
        ip("link", "set", name, "up")
        ip("addr", "add", f"{v4}/{bits}", "dev", name)
        ip("-6", "addr", "add", f"{v6}/{bits6}", "dev", name, "nodad")
        blocks = (["default"], ["default"]) if name == "internet" else (PRIVATE, PRIVATE6)
        self._tell(json.dumps(zone))
        assert self._process.stdout.readline() == "ready\n"
        for block in blocks[0]:
            ip("route", "add", block, "via", gateway, "dev", name)
        for block in blocks[1]:
            ip("-6", "route", "add", block, "via", gateway6, "dev", name)

    def _tell(self, words):
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()

    def arrived(self):
        """(packets by destination, requests) until now."""
        self._tell("?")
        answer = json.loads(self._process.stdout.readline())
        return Counter(answer["packets"]), answer["asked"]

    def end(self):
        self._process.kill()
        self._process.wait()


def zone():
    """A name for each address in each of three ways: straight, beside a public one, and from the second lookup on."""
    names = {"host.org": [["127.0.0.1"]], "world.org": [[WEB]], "world6.org": [[WEB6]], "127.0.0.1.nip.io": [["127.0.0.1"]],
             "xn--bcher-kva.org": [["127.0.0.1"]]}
    for number, address in enumerate(ADDRESSES):
        names |= {f"straight{number}.org": [[address]], f"mixed{number}.org": [[WEB, address]],
                  f"moving{number}.org": [[WEB], [address]]}
    return names


def cases():
    """(URL, the statuses that it may have)."""
    yield from ((url, {422}) for url in CORPUS if "\ud800" not in url)
    yield from ((f"http://world.org/to/{number}", {422}) for number in range(len(CORPUS)))
    for number in range(len(ADDRESSES)):
        yield from ((f"http://{kind}{number}.org/", {422}) for kind in ("straight", "mixed"))
        yield f"http://moving{number}.org/", {201}      # the public address, as it is the first time
        yield from ((f"http://moving{number}.org/", {422}) for _ in range(2))


@contextmanager
def service():
    """Requests to a service of this namespace."""
    with api(POSTHORN_FETCH_RATE_LIMIT="100000", POSTHORN_API_PROCESSES="1") as (_, address, _):
        yield Http(address, Member(address).key())


def unguarded(url):
    """What a fetch without a guard does with a URL: it shows that the way inside is open."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
        return answer.status


def run():
    """All cases; returns whether nothing came through."""
    ip("link", "set", "lo", "up")
    with ExitStack() as ending:
        conf = ending.enter_context(tempfile.NamedTemporaryFile("w"))
        conf.write(RESOLV_CONF)
        conf.flush()
        subprocess.run(["mount", "--bind", conf.name, "/etc/resolv.conf"], check=True)
        internet, inside = (Place(name, names) for name, names in (("internet", zone()), ("inside", None)))
        ending.callback(internet.end)
        ending.callback(inside.end)
        own = web_servers((80, 8080))
        for url in ("http://10.1.2.3/", "http://[fd00:ec2::254]/", "http://169.254.169.254/", "http://straight2.org/",
                    "http://127.0.0.1/"):
            assert unguarded(url) == 200, url
        before, own_before = sum(inside.arrived()[0].values()), sum(server.asked for server in own)
        print(f"without a guard: {before} packets inside, {own_before} requests to this machine itself", flush=True)
        http = ending.enter_context(service())
        statuses, wrong, number = judge(http)
        found, own_found = inside.arrived()[0].total() - before, sum(server.asked for server in own) - own_before
        print(f"from-url: {number} cases, answers {dict(statuses)}, wrong {len(wrong)}")
        print(f"from-url: {found} packets inside, {own_found} requests to this machine itself")
        seen = internet.arrived()[0]
        strange = set(seen) - {WEB, WEB6, NAMES}
        print(f"from-url: packets on the internet {dict(seen)}, to other addresses than those of its servers {len(strange)}")
        for url, status, body in wrong[:20]:
            print(f"WRONG {url!a} {status} {body}")
        return not (found or own_found or wrong or strange)


def judge(http):
    """Asks for all; returns the statuses, what was wrong, and how many there were."""
    statuses, wrong, number = Counter(), [], 0
    for good in ("http://world.org/a", "http://world6.org/a", f"http://{WEB}/a"):
        assert http.post("/v1/media/from-url", {"url": good}).status == 201, good
    for url, allowed in cases():
        number += 1
        answer = http.post("/v1/media/from-url", {"url": url})
        statuses[answer.status] += 1
        if answer.status not in allowed:
            wrong.append((url, answer.status, answer.raw[:200]))
    return statuses, wrong, number


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--unshared", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.place:
        return place(given.place)
    if given.unshared:
        raise SystemExit(not run())
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        raise SystemExit("no network namespaces can be made here: this needs Linux, root and CAP_SYS_ADMIN; NOTHING was tested")
    raise SystemExit(subprocess.run([*apart, sys.executable, "-m", "tests.benchmarks.namespaces", "--unshared"], cwd=ROOT,
                                    check=False).returncode)


if __name__ == "__main__":
    main()
