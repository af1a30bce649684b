import json
import math
import unittest
from pathlib import Path

from aworld_train_bridge.errors import ChannelError
from aworld_train_bridge.frames import decode_frame, encode_frame, float32, int32, uint8

ARRAYS = {"ids": int32([1, -2, 2**31 - 1]), "mask": uint8([1, 0, 1, 1, 0]), "logprobs": float32([-0.5, 0.0, -1e-30]), "none": int32([])}
TYPES = {"i": "int32", "f": "float32", "B": "uint8"}
CORPUS = Path(__file__).parents[3] / "core" / "corpus" / "channel"


class FramesTest(unittest.TestCase):
    def test_a_message_without_arrays_is_text(self) -> None:
        text = encode_frame({"type": "cancel", "key": "ä/重", "reason": ""})
        self.assertEqual(text, '{"type":"cancel","key":"ä/重","reason":""}')
        self.assertEqual(dict(decode_frame(text).header), {"type": "cancel", "key": "ä/重", "reason": ""})

    def test_arrays_travel_unchanged_at_every_header_length(self) -> None:
        for length in range(9):
            data = encode_frame({"type": "result", "key": "x" * length}, ARRAYS)
            self.assertEqual(len(data) % 4, 0)
            frame = decode_frame(data)
            self.assertEqual(dict(frame.header), {"type": "result", "key": "x" * length})
            self.assertEqual(dict(frame.arrays), ARRAYS)

    def test_the_layout_is_that_of_the_specification(self) -> None:
        header = b'{"type":"t","arrays":[{"name":"a","type":"uint8","length":1},{"name":"b","type":"int32","length":1}]}'
        expected = len(header).to_bytes(4, "little") + header + bytes(-len(header) % 4) + b"\x07\0\0\0" + b"\x01\x02\0\0"
        self.assertEqual(encode_frame({"type": "t"}, {"a": uint8([7]), "b": int32([513])}), expected)

    def test_every_cut_of_a_frame_is_refused(self) -> None:
        data = encode_frame({"type": "result"}, ARRAYS)
        for end in range(len(data)):
            with self.assertRaises(ChannelError) as raised:
                decode_frame(data[:end])
            self.assertEqual(raised.exception.code, "CHANNEL_INVALID")

    def test_what_is_no_frame_is_refused(self) -> None:
        def framed(header: object, rest: bytes = b"") -> bytes:
            text = json.dumps(header).encode()
            return len(text).to_bytes(4, "little") + text + bytes(-len(text) % 4) + rest

        entry = {"name": "a", "type": "int32", "length": 1}
        for data in (
            "", "[]", "null", '{"type":1}', b"", b"\xff\xff\xff\xff", b"\x02\0\0\0\xff\xfe\0\0",
            framed({"type": "t"}),
            framed({"type": "t", "arrays": {}}),
            framed({"type": "t", "arrays": [{**entry, "type": "int64"}]}, bytes(8)),
            framed({"type": "t", "arrays": [{**entry, "length": -1}]}, bytes(4)),
            framed({"type": "t", "arrays": [{**entry, "length": True}]}, bytes(4)),
            framed({"type": "t", "arrays": [{**entry, "length": 2**40}]}, bytes(4)),
            framed({"type": "t", "arrays": [entry, entry]}, bytes(8)),
            framed({"type": "t", "arrays": [entry]}, bytes(8)),
            framed({"type": "t", "arrays": [entry, 5]}, bytes(4)),
        ):  # fmt: skip
            with self.subTest(data=data), self.assertRaises(ChannelError):
                decode_frame(data)

    def test_values_that_do_not_fit_are_refused(self) -> None:
        for make in (lambda: int32([2**31]), lambda: uint8([256]), lambda: int32([0.5]), lambda: float32(["x"])):
            with self.assertRaises(ChannelError):
                make()
        with self.assertRaises(ValueError):
            encode_frame({"type": "t", "value": math.nan})

    def test_golden_frames_of_the_other_language(self) -> None:
        files = sorted(CORPUS.glob("*.json"))
        self.assertTrue(files, f"no golden frames in {CORPUS}")
        for path in files:
            with self.subTest(file=path.name):
                golden = json.loads(path.read_text(encoding="utf8"))
                data = bytes.fromhex(golden["hex"]) if "hex" in golden else golden["text"]
                frame = decode_frame(data)
                self.assertEqual(dict(frame.header), golden["message"])
                found = [{"name": name, "type": TYPES[values.typecode], "values": list(values)} for name, values in frame.arrays.items()]
                self.assertEqual(found, golden["arrays"])
                self.assertEqual(encode_frame(frame.header, dict(frame.arrays)), data)


if __name__ == "__main__":
    unittest.main()
