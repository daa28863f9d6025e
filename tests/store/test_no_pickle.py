"""Files that a run reads can never run code: nothing in the package loads pickles."""

import re
from pathlib import Path

import geoweaver

FORBIDDEN = re.compile(
    r"\b(?:import|from)\s+(?:_pickle|cPickle|cloudpickle|dill|joblib|shelve|marshal)\b|\bfrom\s+pickle\s+import\b"
    r"|\bpickle\.(?:loads?|dumps?|Pickler|Unpickler)\b|\ballow_pickle\s*=\s*True|(?<!safetensors\.)\btorch\.save\("
)
TORCH_LOAD = re.compile(r"\btorch\.load\((?P<arguments>(?:[^()]|\([^()]*\))*)\)")


def offences(text):
    found = [match.group() for match in FORBIDDEN.finditer(text)]
    loads = [
        m for m in TORCH_LOAD.finditer(text) if "weights_only=True" not in m["arguments"].replace(" ", "")
    ]
    return found + [m.group() for m in loads]


def test_the_search_finds_what_it_looks_for():
    bad = [
        "import cloudpickle",
        "torch.save(x, f)",
        "from pickle import loads",
        "pickle.loads(x)",
        "np.load(f, allow_pickle=True)",
    ]
    bad += ["torch.load(open(path))", "torch.load(path, weights_only=False)", "import dill"]
    good = [
        "except pickle.UnpicklingError:",
        "safetensors.torch.save(state)",
        "torch.load(str(path), weights_only=True)",
        "np.load(f)",
        "# no pickle anywhere",
        "ForkingPickler(buffer)",
    ]
    assert all(offences(text) for text in bad)
    assert not any(offences(text) for text in good)


def test_no_pickle_in_the_package():
    root = Path(geoweaver.__file__).parent
    found = {str(p.relative_to(root)): offences(p.read_text()) for p in root.rglob("*.py")}
    assert len(found) > 20
    assert not {name: lines for name, lines in found.items() if lines}
