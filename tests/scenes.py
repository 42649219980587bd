"""One network with one account and a connector, driven as the publisher drives it; what differs stands in tests/networks."""

import json
from importlib import import_module

from platforms.base import Published, Waiting
from platforms.registry import PLATFORMS
from tests.live import http_for

LIVE = {platform.name: platform for platform in PLATFORMS if platform.live}
MODULES = {name: import_module(f"tests.networks.{name}") for name in LIVE}
STEPS = 200         # of one preparation; more would be a loop


class Scene:
    """One network with one account, and a connector."""

    def __init__(self, name, net):
        self.module, self.net = MODULES[name], net
        self.connector = LIVE[name](http_for(net), self.module.settings(net))
        self.account = self.module.account(net)

    def content(self, kind):
        """The sample of a post type."""
        return self.module.SAMPLES[kind]

    def endpoint(self, kind):
        """Where a post of this type becomes public."""
        return self.module.PUBLISH if isinstance(self.module.PUBLISH, str) else self.module.PUBLISH[kind]

    def public(self):
        """The ids of what others can see."""
        return self.module.public(self.net)

    def prepared(self, content, again=False):
        """The receipt of a preparation, stored after each step; `again`: a worker dies with each step that brings something."""
        return self._run(self.connector.prepare, content, {}, again)

    def sent(self, content, receipt):
        """Published, after as many checks as the network wants."""
        outcome = self.connector.publish(self.account, content, receipt)
        for _ in range(STEPS):
            if isinstance(outcome, Published):
                return outcome
            self.net.advance(outcome.after)
            outcome = self.connector.check(self.account, json.loads(json.dumps(outcome.receipt)))
        raise AssertionError(f"not published after {STEPS} checks")

    def followed(self, content, receipt, outcome):
        """The receipt after what follows the public post `outcome`."""
        return self._run(self.connector.follow, content, {**receipt, "public": {"id": outcome.id, "url": outcome.url}})

    def writes(self):
        """The endpoints of the requests that changed something; a PUT of nothing asks how far an upload is."""
        return sorted(request.endpoint for request in self.net.requests
                      if request.method not in ("GET", "HEAD") and (request.method != "PUT" or request.size))

    def _run(self, verb, content, receipt, again=False):
        steps = verb(self.account, content, receipt)
        for _ in range(STEPS):
            step = next(steps, None)
            if step is None:
                return receipt
            before, receipt = receipt, json.loads(json.dumps(step.receipt if isinstance(step, Waiting) else step))
            if isinstance(step, Waiting):
                self.net.advance(step.after)
            if isinstance(step, Waiting) or again and receipt != before:
                steps = verb(self.account, content, receipt)
        raise AssertionError(f"not done after {STEPS} steps")
