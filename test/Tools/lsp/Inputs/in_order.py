"""Runs the language server on the messages of a test and prints notifications, then answers by their ids: each is right whenever
it comes."""

import json
import re
import subprocess
import sys

output = subprocess.run(["tessera-lsp-server", "-lit-test"], stdin=sys.stdin, stdout=subprocess.PIPE, text=True, check=True).stdout
messages = [json.loads(text) for text in re.split(r"Content-Length: \d+\n\n", output) if text.strip()]
for message in sorted(messages, key=lambda message: message.get("id", -1)):
    print(json.dumps(message, indent=1, sort_keys=True))
