"""Senses of class names that the company of the other names does not tell."""

from __future__ import annotations

CIFAR_SENSES = {
    "baby": "baby.n.01",
    "boy": "male_child.n.01",
    "castle": "castle.n.02",
    "caterpillar": "caterpillar.n.01",
}
"""For CIFAR-10 and CIFAR-100 together; `WordNet` chooses the other 106 rightly by itself."""

ANIMAL_SENSES: dict[str, str] = {}
"""For Animals with Attributes: `WordNet` chooses all 50 rightly by itself."""
