"""What the package index shows: addresses, and a README that works there.

The project's address is $ATTN_URL or, without one, that of the git remote
`origin`.  Links and pictures of README.md are relative, as a checkout wants
them; for the package they lead to the tag of this version at that address.
Without an address there are no links to add, and README.md stays as it is.

pyproject.toml names this file as a provider of metadata.
"""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
PAGES = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md",
         "Issues": None}


def web_address(remote):
    """https://HOST/OWNER/NAME of a remote, or nothing for a local one."""
    found = re.fullmatch(
        r"(?:https://(?:[^@/]+@)?|ssh://(?:[^@/]+@)?|[^@/:]+@)"
        r"(?P<host>[\w.-]+\.\w+)(?::\d+)?[:/](?P<path>[\w./~-]+?)(?:\.git)?/?",
        remote.strip())
    return f"https://{found['host']}/{found['path']}" if found else None


def address():
    if "ATTN_URL" in os.environ:
        return os.environ["ATTN_URL"].rstrip("/") or None
    done = subprocess.run(["git", "-C", ROOT, "remote", "get-url", "origin"],
                          capture_output=True, text=True, check=False)
    return web_address(done.stdout) if done.returncode == 0 else None


def readme(text, url, version):
    """README.md with absolute links and pictures."""
    def absolute(found):
        if re.match(r"[a-z]+:|#", found["target"]) or not url:
            return found[0]
        kind = "raw" if found["picture"] else "blob"
        return (f"{found['picture']}[{found['text']}]"
                f"({url}/{kind}/v{version}/{found['target']})")
    return LINK.sub(absolute, text)


def urls(url, version):
    if not url:
        return {}
    return {"Repository": url,
            **{name: f"{url}/blob/v{version}/{page}" if page else
               f"{url}/{name.lower()}" for name, page in PAGES.items()}}


def dynamic_metadata(_, project):
    """What scikit-build-core asks for."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    url, version = address(), project["version"]
    return {"urls": urls(url, version),
            "readme": {"content-type": "text/markdown",
                       "text": readme(text, url, version)}}
