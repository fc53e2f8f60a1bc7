"""ones.py X.npy: writes 4 x 12 ones, and -1 in one place."""

import sys

from npy import write

numbers = [1.0] * 48
numbers[3 * 12 + 9] = -1.0
write(sys.argv[1], (4, 12), numbers)
