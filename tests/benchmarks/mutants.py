"""Deletes each predicate that keeps tenants apart, one at a time in a copy of the code, and runs the tests that watch it.

    python -m tests.benchmarks.mutants [--minutes 60] [--only WORD] [--list]

What compares a team, client, user or mode in a query is found by itself, in Peewee's expressions and in SQL; what ends a
credential or allows an operation is listed here. Every mutant must be killed. Ends with status 1 if one lives.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEYS, SECURITY, ACCOUNTS = "storage/keys.py", "handlers/security.py", "handlers/accounts.py"
OWNERS = {"team_id", "client_id", "user_id", "mode", "oauth_client_id", "webhook_id"}
IN_SQL = re.compile(r"(?:WHERE\s+|AND\s+|ON\s+|= \")((?:\w+\.)?(?:team_id|client_id|user_id|mode|webhook_id) = (%\(\w+\)s|%s))")
FAILED = re.compile(r"^1 failed", re.M)

# Beside those that are found: (file, what stands there, what stands there instead).
LISTED = {
    "a limited credential sees its client": (
        "storage/models.py", "query if caller.client_id is None else query.where(cls.id == caller.client_id)", "query"),
    "a limited credential acts for its client": ("handlers/clients.py", "client_id = client_id or caller.client_id", "pass"),
    "accounts to disconnect are live": (ACCOUNTS, 'row = None if caller.mode == "test" else Account', "row = Account"),
    "accounts to list are live": (
        ACCOUNTS, '    if caller.mode == "test":\n        accounts', "    if False:\n        accounts"),
    "a key is not revoked": (KEYS, "%(digest)s AND k.revoked_at IS NULL AND", "%(digest)s AND"),
    "a key has not expired": (KEYS, "AND (k.expires_at IS NULL OR k.expires_at > now())", ""),
    "a key's user is not disabled": (KEYS, "k.expires_at > now())\n    AND u.disabled_at IS NULL", "k.expires_at > now())"),
    "a token has not expired": (KEYS, "AND o.expires_at > now()", ""),
    "a grant is not revoked": (KEYS, "AND g.revoked_at IS NULL", ""),
    "an app is not revoked": (KEYS, "AND a.revoked_at IS NULL", ""),
    "a token's user is not disabled": (KEYS, "a.revoked_at IS NULL\n    AND u.disabled_at IS NULL", "a.revoked_at IS NULL"),
    "the scope is there": (SECURITY, "or operation.scope not in caller.scopes", ""),
    "the plan is active": (SECURITY, "not caller.plan_active or operation.scope", "operation.scope"),
    "an app is of the person's team": (
        "handlers/pages/authorize.py", "if app.team_id not in (None, user.team_id):", "if False:"),
}

# The tests that watch a file, where that is not the matrix alone.
COMMANDS = ["test_audit_commands.py"]
WEBHOOKS = ["test_webhooks_api.py", "test_webhooks_delivery.py", "test_webhooks_giving_up.py", "test_webhooks_claims.py"]
WATCHED_BY = {
    "handlers/admin.py": COMMANDS, "handlers/consents.py": COMMANDS, "handlers/console.py": COMMANDS,
    "handlers/credentials.py": COMMANDS, "handlers/identity.py": COMMANDS,
    "storage/audit.py": COMMANDS, "storage/keys.py": ["test_matrix.py", *COMMANDS],
    "handlers/idempotency.py": ["test_idempotency.py"], "handlers/pages/authorize.py": ["test_oauth_refusals.py"],
    "handlers/webhooks.py": WEBHOOKS, "storage/deliveries.py": WEBHOOKS, "storage/webhooks.py": WEBHOOKS,
    "storage/budgets.py": ["test_caption_budget.py"], "storage/claims.py": ["test_quotas.py"],
    "storage/oauth.py": ["test_oauth_refusals.py", "test_oauth.py"], "storage/people.py": ["test_sign_in.py"],
    "storage/models.py": ["test_matrix.py", "test_ideas.py"], "storage/posts.py": ["test_matrix.py", "test_posts.py"],
}


def mutants(root):
    """All mutants of the code at `root`, by name: (file, the text of the file with this mutant)."""
    found = {}
    for name, (file, old, new) in LISTED.items():
        text = (root / file).read_text()
        assert text.count(old) == 1, f"{name}: {file} has this {text.count(old)} times: {old}"
        found[name] = file, text.replace(old, new)
    for path in sorted([*root.glob("handlers/**/*.py"), *root.glob("platforms/*.py"), *root.glob("storage/*.py")]):
        file, text = str(path.relative_to(root)), path.read_text()
        for start, end, always in sorted({*_in_expressions(text), *_in_sql(text)}):
            line = text[:start].count("\n") + 1
            found[f"{file}:{line}: {text[start:end]}"] = file, text[:start] + always + text[end:]
    return found


def _in_expressions(text):
    """What compares an owner in Peewee's expressions as (start, end, what always holds)."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        left = getattr(node, "left", None)
        if isinstance(node, ast.Compare) and isinstance(left, ast.Attribute) and left.attr in OWNERS and _is_model(left.value):
            whole, field = (ast.get_source_segment(text, one) for one in (node, left))
            start = text.index(whole, starts[node.lineno - 1])
            yield start, start + len(whole), f"(({field} == {field}) | {field}.is_null())"


def _is_model(node):
    return isinstance(node, ast.Name) and (node.id in ("cls", "kind") or node.id[0].isupper() and not node.id.isupper())


def _in_sql(text):
    for match in IN_SQL.finditer(text):
        yield *match.span(1), f"({match[2]} IS NOT NULL OR true)"


def killed(directory, file, text):
    """Whether the tests that watch the file fail on it with this text."""
    path = directory / file
    before = path.read_text()
    path.write_text(text)
    try:
        tests = [f"tests/{name}" for name in WATCHED_BY.get(file, ["test_matrix.py"])]
        run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
                             cwd=directory, capture_output=True, text=True, timeout=600, check=False)
        # A test failed. Anything else (no service, a broken import) would prove nothing.
        assert run.returncode == 0 or FAILED.search(run.stdout), run.stdout[-2000:]
        return run.returncode == 1
    finally:
        path.write_text(before)


def main():
    """Runs the mutants, within the minutes given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", default="", help="only mutants whose name has this word")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    options = parser.parse_args()
    end, lives, left = time.monotonic() + options.minutes * 60, [], []
    with tempfile.TemporaryDirectory(prefix="posthorn-mutants-") as temporary:
        directory = Path(temporary) / "code"
        shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.egg-info", "node_modules"))
        for name, (file, text) in mutants(directory).items():
            if options.only not in name:
                continue
            if options.list:
                print(name)
                continue
            if time.monotonic() > end:
                left.append(name)
                continue
            dead = killed(directory, file, text)
            lives += [] if dead else [name]
            print(f"{'killed' if dead else 'LIVES '}  {name}", flush=True)
    print(f"{len(lives)} live, {len(left)} not run")
    sys.exit(1 if lives or left else 0)


if __name__ == "__main__":
    main()
