"""The outlines of a font's glyphs, as this folder has them: python3 outlines.py Inter-Regular.otf > regular.txt"""

import sys

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont

CHARACTERS = [chr(code) for code in range(32, 127)] + list("×·…→←↓↑−–—≤≥≠÷°“”‘’²³")
COMMANDS = {"moveTo": "M", "lineTo": "L", "curveTo": "C", "closePath": "Z"}

font = TTFont(sys.argv[1])
glyphs, names = font.getGlyphSet(), font.getBestCmap()
print(font["head"].unitsPerEm)
for character in CHARACTERS:
    glyph = glyphs[names[ord(character)]]
    pen = DecomposingRecordingPen(glyphs)
    glyph.draw(pen)
    path = [" ".join([COMMANDS[command], *(f"{x} {y}" for x, y in points)]) for command, points in pen.value]
    print(character, glyph.width, *path)
