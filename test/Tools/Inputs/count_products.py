"""Prints the number of products in the PTX of a bundle's kernel and writes its cubin: count_products.py BUNDLE CUBIN"""

import base64
import json
import sys

with open(sys.argv[1]) as file:
    bundle = json.load(file)
print(bundle["kernels"][0]["report"]["instructions"]["wgmma"], "products")
with open(sys.argv[2], "wb") as file:
    file.write(base64.b64decode(bundle["image"]["base64"]))
