#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `dial9 report --html`: what is in the file, and when there is none.  tests/viewer opens it in a browser.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" small plain small.bin
mkdir -p dir/web-1 dir/web-2
"$make_trace" small plain dir/web-1/trace.0.bin
"$make_trace" two zstd dir/web-2/trace.0.bin.zst

# sized: the size, which changes with the viewer, as SIZE
sized() {
	sed 's/[0-9.]* [KMG]iB/SIZE/g'
}

say "one file, and its size is told"
run report --html -o page.html small.bin 2>err
sized <err
head -n 2 page.html

say "its policy names exactly the script and the style that are in it"
python3 - <<'END'
import base64, hashlib, json, re
page = open("page.html").read()
for part, element in (("script", r'<script type="module">'), ("style", "<style>")):
    body = re.search(element + "(.*?)</" + part + ">", page, re.S).group(1)
    told = re.search(part + "-src 'sha256-([^']*)'", page).group(1)
    print(part, base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() == told)
print(re.findall(r"(?:src|href)=\"(?!data:)[^\"]*\"", page))
END

say "the segments are in it as they are, under names below the folder that they share, and the report"
export dial9
run report --html -o page.html dir 2>err
python3 - <<'END'
import base64, json, os, re, subprocess
page = open("page.html").read()
listing = json.loads(re.search(r'id="embedded">(.*?)</script>', page, re.S).group(1))
blocks = re.findall(r'trace\+base64">(.*?)</script>', page)
print(listing["name"], [s["name"] for s in listing["segments"]])
print([base64.b64decode(b) == open(s["name"], "rb").read() for s, b in zip(listing["segments"], blocks)])
report = json.loads(re.search(r'id="embedded-report">(.*?)</script>', page, re.S).group(1))
said = json.loads(subprocess.run([os.environ["dial9"], "report", "--json", "dir"], stdout=subprocess.PIPE).stdout)
# The page has the names of frames, too.
print({key: report[key] for key in said} == said)
END

say "to a pipe; one that reads no further is no failure"
"$dial9" report --html -o - small.bin 2>err | head -n 1
cat err

say "what there is no page for"
run report --html small.bin
run report -o page.html small.bin
run report --html -o /nonexistent/page.html small.bin
run report --html -o page.html /nonexistent
run report --html -o page.html - <small.bin

say "more than 100 MiB only with --force, and nothing is left of the attempt"
rm page.html
# A string that no event uses, of 76 MiB, before the end of a trace.
python3 - <<'END'
import struct
with open("big.bin", "wb") as out:
    out.write(open("small.bin", "rb").read())
    out.write(b"\3" + struct.pack("<III", 1, 1 << 30, 76 << 20))
    out.write(b"x" * (76 << 20))
END
run report --html -o page.html big.bin 2>err
sed 's/about [0-9.]* MiB/about SIZE/' err
ls page.html*
run report --html --force -o page.html big.bin 2>err
sized <err

finish ''
