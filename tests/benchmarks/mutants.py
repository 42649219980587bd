"""Deletes each predicate that keeps tenants apart, one at a time in a copy of the code, and runs the matrix against it.

    python -m tests.benchmarks.mutants [--minutes 30] [--only WORD]

Every mutant must be killed: a matrix that lets one live does not watch that predicate. Ends with status 1 if one lives.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODELS, KEYS, SECURITY = "storage/models.py", "storage/keys.py", "handlers/security.py"

# (file, what stands there, what stands there instead)
MUTANTS = {
    "a row is of a team": (
        MODELS, "cls.select().where(cls.team_id == caller.team_id)", "cls.select().where(cls.team_id.is_null(False))"),
    "a row is of a mode": (MODELS, "query = query.where(cls.mode == caller.mode)", "pass"),
    "a row is of a client": (MODELS, "query = query.where(cls.client_id == caller.client_id)", "pass"),
    "a limited credential sees its client": (
        MODELS, "query if caller.client_id is None else query.where(cls.id == caller.client_id)", "query"),
    "an idea is its user's": (MODELS, "cls.of(caller).where(cls.user_id == caller.user_id)", "cls.of(caller)"),
    "accounts are of a team": (MODELS, "cls.select().where(cls.team_id == team_id, owner)", "cls.select().where(owner)"),
    "accounts are of a client": (
        MODELS, "cls.select().where(cls.team_id == team_id, owner)", "cls.select().where(cls.team_id == team_id)"),
    "a limited credential acts for its client": ("handlers/clients.py", "client_id = client_id or caller.client_id", "pass"),
    "accounts to disconnect are live": (
        "handlers/accounts.py", 'row = None if caller.mode == "test" else Account', "row = Account"),
    "accounts to list are live": (
        "handlers/accounts.py", '    if caller.mode == "test":\n        accounts', "    if False:\n        accounts"),
    "a key is not revoked": (
        KEYS, "WHERE k.digest = %(digest)s AND k.revoked_at IS NULL AND", "WHERE k.digest = %(digest)s AND"),
    "a key has not expired": (KEYS, "AND (k.expires_at IS NULL OR k.expires_at > now())", ""),
    "a key's user is not disabled": (KEYS, "k.expires_at > now())\nAND u.disabled_at IS NULL", "k.expires_at > now())"),
    "a token has not expired": (KEYS, "AND o.expires_at > now()", ""),
    "a grant is not revoked": (KEYS, "AND g.revoked_at IS NULL", ""),
    "an app is not revoked": (KEYS, "AND a.revoked_at IS NULL", ""),
    "a token's user is not disabled": (KEYS, "a.revoked_at IS NULL\nAND u.disabled_at IS NULL", "a.revoked_at IS NULL"),
    "the scope is there": (SECURITY, "or operation.scope not in caller.scopes", ""),
    "the plan is active": (SECURITY, "not caller.plan_active or operation.scope", "operation.scope"),
}


def killed(name, directory):
    """Whether the matrix fails on the code with this mutant."""
    file, old, new = MUTANTS[name]
    path = directory / file
    text = path.read_text()
    assert text.count(old) == 1, f"{name}: {file} has this {text.count(old)} times: {old}"
    path.write_text(text.replace(old, new))
    try:
        run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/test_matrix.py"],
                             cwd=directory, capture_output=True, text=True, timeout=600, check=False)
        # Status 1: tests failed. Anything else (no service, a broken import) would prove nothing.
        assert run.returncode in (0, 1), run.stdout[-2000:]
        return run.returncode == 1 and "AssertionError" in run.stdout
    finally:
        path.write_text(text)


def main():
    """Runs the mutants, within the minutes given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--only", default="", help="only mutants whose name has this word")
    options = parser.parse_args()
    end, lives, left = time.monotonic() + options.minutes * 60, [], []
    with tempfile.TemporaryDirectory(prefix="posthorn-mutants-") as temporary:
        directory = Path(temporary) / "code"
        shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.egg-info"))
        for name in MUTANTS:
            if options.only not in name:
                continue
            if time.monotonic() > end:
                left.append(name)
                continue
            dead = killed(name, directory)
            lives += [] if dead else [name]
            print(f"{'killed' if dead else 'LIVES '}  {name}", flush=True)
    print(f"{len(lives)} live, {len(left)} not run")
    sys.exit(1 if lives or left else 0)


if __name__ == "__main__":
    main()
