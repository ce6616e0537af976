#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""find_secrets.py SECRETS FILE...: which files hold one of the words that SECRETS lists, one a line in hexadecimal.

A word is looked for as it lies in memory, in either order of bytes, as a varint, also zigzag, and as a number in text,
decimal or hexadecimal; in what is packed by gzip or zstd, or stands in base64, too.  A word less a little counts: readers
look callers up one byte before their address; and so does one that was rounded to a double.
Names those that do; a file that cannot be unpacked is an error.
"""
import base64
import gzip
import re
import subprocess
import sys

NEAR = 1 << 12  # a double of 64 bits is rounded by 2^10
NUMBER = re.compile(rb"(?<![0-9A-Za-z])(?:0x([0-9a-f]{11,16})|([0-9]{13,20}))(?![0-9])", re.I)
BARE_HEX = re.compile(rb"(?<![0-9a-z])[0-9a-f]{11,16}(?![0-9a-z])", re.I)
BASE64 = re.compile(rb"[A-Za-z0-9+/]{200,}={0,2}")


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def patterns(secret):
    """Without the lowest 16 bits, which a small difference changes."""
    signed = secret - (1 << 64) if secret >> 63 else secret
    zigzag = (signed << 1 ^ signed >> 63) & (1 << 64) - 1
    word = secret.to_bytes(8, "little")[2:]
    return [word, word[::-1], varint(secret >> 21), varint(zigzag >> 21)]


def is_near(number, secrets):
    return any(abs(number - secret) <= NEAR for secret in secrets)


def holds(data, secrets):
    if any(pattern in data for secret in secrets for pattern in patterns(secret)):
        return True
    if any(is_near(int(m[1], 16) if m[1] else int(m[2]), secrets) for m in NUMBER.finditer(data)):
        return True
    return any(is_near(int(m[0], 16), secrets) for m in BARE_HEX.finditer(data))


def unpacked(data):
    """The data, and all that is packed in it."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield from unpacked(gzip.decompress(data))
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        # A segment that is being written ends anywhere.
        inner = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        if not inner:
            raise ValueError("zstd -d says nothing")
        yield from unpacked(inner)
    else:
        for match in BASE64.finditer(data):
            text = match[0].rstrip(b"=")
            yield from unpacked(base64.b64decode(text[: len(text) & ~3]))


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        secrets = [int(line, 16) for line in file]
    # What looks for them finds them.
    for secret in secrets:
        for form in patterns(secret) + [b"%d" % (secret - 1), b" 0x%x" % secret, b'"%x"' % secret, b"%d" % int(float(secret))]:
            assert holds(b"{ " + form + b" }", secrets), form
    found = 0
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            data = file.read()
        if not data:
            print(f"{path} is empty")
            found += 1
        elif any(holds(part, secrets) for part in unpacked(data)):
            print(f"{path} holds a secret")
            found += 1
    print("all are clean" if not found else f"{found} of {len(sys.argv) - 2} are not")


main()
