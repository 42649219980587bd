"""What goes into a log without what opens anything: a net below the care that is taken where lines are written."""

import re
from collections.abc import Iterable, Mapping

GONE = "…"
# What of the settings is secret, by name; shorter values are words that stand in logs for other reasons.
SECRET_SETTING = re.compile(r"(KEYS?|SECRET|PASSWORD|TOKEN|HEADERS)$")
SHORTEST = 12
SHORTEST_MATCH = 20     # characters of letters and digits alone that some pattern takes
PATTERNS = [(re.compile(pattern), replacement) for pattern, replacement in (
    (r"\b(sk_live|sk_test|at|rt|ac|cs|in)_[0-9A-Za-z]{38}\b", rf"\1_{GONE}"),           # ours: storage/keys.py
    (r"\b(?i:(bearer|basic|dpop))\s+[\w.~+/=-]{8,}", rf"\1 {GONE}"),
    (r"\beyJ[\w-]{8,}\.[\w-]+(\.[\w-]+)?", GONE),                                       # JSON Web Tokens
    (r"\bgAAAA[\w-]{20,}=*|(?<![\w-])[\w-]{43}=(?!\w)", GONE),                          # what is sealed, and what seals it
    (r"\b(whsec_|sk-|ya29\.)[\w+/.-]{20,}=*", rf"\1{GONE}"),                            # of webhooks, models, Google
    (r"(?<=://)[^/\s@]*:[^/\s@]+@", f"{GONE}@"),
    (r"(?i)\b((?:access|refresh|app)?_?(?:token|jwt|password|secret|signature|credential)|client_secret|code_verifier)"
     r"(=|[\"']:\s*[\"'])[^&\s\"',}]+", rf"\1\2{GONE}"),
    (r"(?i)\b(code|state|(?:\w+_)?key)=[^&\s\"',}]{16,}", rf"\1={GONE}"),
)]


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without whatever looks like a credential, and without the `secrets` as they are."""
    for secret in secrets:
        text = text.replace(secret, GONE)
    if len(text) < SHORTEST_MATCH and text.isalnum():
        return text
    for pattern, replacement in PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """The values of the settings that are secret, and their parts where one holds several."""
    values = [value for name, value in environ.items() if SECRET_SETTING.search(name)]
    parts = {part.strip() for value in values for part in (value, *re.split(r'[,"{}=]', value))}
    return sorted((part for part in parts if len(part) >= SHORTEST), key=len, reverse=True)
