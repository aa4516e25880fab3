"""Files in WordNet's format."""

SYNSETS = {
    "noun": [["lawsuit", "suit", "case"], ["suit", "suit_of_clothes"]],
    "verb": [["suit", "accommodate"]],
    "adj": [["suited(p)", "Apt"]],
    "adv": [],
}


def write_wordnet(folder, synsets=SYNSETS):
    """Index and data files with a licence before them, as WordNet 3 has it; an offset is a place in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, those in synsets.items():
        data, offsets = "  1 This software is provided to you  \n", {}
        for words in those:
            offset = len(data.encode())
            listed = " ".join(f"{word} 0" for word in words)
            data += f"{offset:08d} 03 {part[0]} {len(words):02x} {listed} 001 @ 00000001 n 0000 | a gloss\n"
            for word in words:
                offsets.setdefault(word.partition("(")[0].lower(), []).append(f"{offset:08d}")
        lines = [
            f"{word} {part[0]} {len(places)} 1 @ {len(places)} 0 {' '.join(places)}  "
            for word, places in sorted(offsets.items())
        ]
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text("\n".join(["  1 This software is provided to you  ", *lines]) + "\n")
    return folder
