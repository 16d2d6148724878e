"""Where the words of an SVG are, if every letter is as wide as the writer
takes it to be: 0.61 of the size of the font.
"""

import xml.etree.ElementTree as ElementTree

NAME = "{http://www.w3.org/2000/svg}"
LETTER, ASCENT, DESCENT = 0.61, 0.75, 0.2


class Page:
    def __init__(self, text):
        self.root = ElementTree.fromstring(text)
        _, _, self.width, self.height = map(
            float, self.root.get("viewBox").split())
        self.size = float(self.root.get("font-size"))
        self.words = [(element.text, self.box(element))
                      for element in self.root.iter(NAME + "text")]

    def box(self, element):
        """Left, top, right, bottom."""
        x, y = float(element.get("x")), float(element.get("y"))
        width = len(element.text) * LETTER * self.size
        if element.get("text-anchor") == "end":
            x -= width
        return (x, y - ASCENT * self.size, x + width, y + DESCENT * self.size)

    def faults(self):
        """Sentences: words that are not on the page, or over others."""
        found = []
        for number, (text, (left, top, right, bottom)) in enumerate(self.words):
            if left < 0 or top < 0 or right > self.width or (
                    bottom > self.height):
                found.append(f"{text!r} is not on the page")
            for other, box in self.words[:number]:
                if (left < box[2] and box[0] < right and top < box[3]
                        and box[1] < bottom):
                    found.append(f"{text!r} is over {other!r}")
        return found

    def groups(self, kind):
        """The titles of groups of a class."""
        return [group.find(NAME + "title").text
                for group in self.root.iter(NAME + "g")
                if group.get("class") == kind]
