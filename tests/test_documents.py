"""What the documents repeat is what the code says."""

import re
import runpy
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from walks import KERNELS, PACKAGE, has_functions, leads_to, visited, walks

import setwise as sw

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = walks(CONTRIBUTING)


def test_contributing_shows_the_example_that_runs() -> None:
    example = (ROOT / "examples" / "plot_own_loss.py").read_text(encoding="utf-8")
    region = example.split("# [own-loss]\n")[1].split("# [own-loss-end]")[0].strip()
    section = CONTRIBUTING.split("## Add your own loss")[1].split("\n## ")[0]
    shown = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert shown is not None, "CONTRIBUTING.md has no Python block under 'Add your own loss'"
    assert shown[1].strip() == region


def test_the_recipe_of_a_loss_names_every_list_and_every_test_of_losses() -> None:
    section = CONTRIBUTING.split("## Add your own loss")[1].split("\n## ")[0]
    assert all(path in section for path in ("loss_registry.py", "examples_of_functions.py"))
    globs = re.findall(r"tests/test_[\w*]+\.py", section)
    run = set(chain.from_iterable(ROOT.glob(glob) for glob in globs))
    users = re.compile(r"^from loss_registry import", re.MULTILINE)
    tests = ROOT.glob("tests/test_*.py")
    of_losses = {path for path in tests if users.search(path.read_text(encoding="utf-8"))}
    assert of_losses
    assert not of_losses - run, "a test runs over all losses, and the recipe does not run it"


def test_the_readme_begins_with_the_commands_that_set_up_a_fresh_machine() -> None:
    top = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["requires-python"].removeprefix(">=")
    for words in ("make demo ", "make test ", "minutes", f"Python {needed}", "C++17", "GB of disk"):
        assert words in top, f"README.md says nothing of {words!r} at its top"


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    stated = re.search(r'^version: "?([^"\n]+)"?$', citation, flags=re.MULTILINE)
    assert stated is not None
    assert sw.__version__ == version("setwise") == stated[1]
    assert f"## [{stated[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_recipe_asks_for_what_the_wheel_asks_for() -> None:
    path = ROOT / "recipe" / "recipe.yaml"
    if not path.exists():
        pytest.skip("the recipe is not part of the sdist")
    recipe = path.read_text(encoding="utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = settings["project"], settings["build-system"]["requires"]

    def asked(section: str) -> list[str]:
        lines = re.search(rf"^  {section}:\n((?:    .*\n)*)", recipe, re.MULTILINE)
        assert lines is not None
        return re.findall(r"^    - (\S+ >=\S+)$", lines[1], re.MULTILINE)

    python = f"python {project['requires-python']}"
    spaced = {
        key: [it.replace(">=", " >=") for it in value]
        for key, value in {"run": project["dependencies"], "host": build}.items()
    }
    assert sorted(asked("run")) == sorted([python, *spaced["run"]])
    assert sorted(asked("host")) == sorted([python, *spaced["host"]])
    assert f'version: "{sw.__version__}"' in recipe
    for entry in (f"license: {project['license']}", f"summary: {project['description']}"):
        assert entry in recipe
    for name, function in project["scripts"].items():
        assert f"- {name} = {function}" in recipe
    for file in re.findall(r"^ +- (tests/\S+)$", recipe, re.MULTILINE):
        assert (ROOT / file).exists()


PAPER = (
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "References",
)


def test_the_paper_has_the_sections_that_its_journal_asks_for() -> None:
    path = ROOT / "paper" / "paper.md"
    if not path.exists():
        pytest.skip("the paper is not part of the sdist")
    text = path.read_text(encoding="utf-8")
    assert tuple(re.findall(r"^# (.*)$", text, re.MULTILINE)) == PAPER
    cited = set(re.findall(r"@(\w+)", text.partition("---\n")[2].partition("---\n")[2]))
    listed = set(
        re.findall(r"^@\w+{(\w+),", (path.with_name("paper.bib")).read_text("utf-8"), re.M)
    )
    assert cited == listed


def test_what_it_is_for_is_the_same_everywhere() -> None:
    first = "Learn with the loss you are evaluated by. Predict with certificates, uncertainty and"
    for page in ("README.md", "docs/index.md", "demo/page.html"):
        assert first in (ROOT / page).read_text(encoding="utf-8"), f"{page} says something else"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    described = settings["project"]["description"].lower()
    for page in ("CITATION.cff", "paper/paper.md"):
        if (ROOT / page).exists():  # the paper is not part of the sdist
            title = re.search(
                r"^title: ['\"]setwise: (.*)['\"]$", (ROOT / page).read_text("utf-8"), re.M
            )
            assert title is not None
            assert title[1] == described, f"the title of {page} is not that of pyproject.toml"


FOLDERS = (".", "guide", "coming_from", "tutorials")
PAGES = [page for folder in FOLDERS for page in (ROOT / "docs" / folder).glob("*.md")]


def prose(page: Path) -> str:
    """A page without its code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What a link may end in: the headings of a page, as Sphinx names them."""
    headings = re.findall(r"^#{1,3} (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if target.parent.name == "gallery":  # made from the scripts
            target = ROOT / "examples" / target.with_suffix(".py").name
            target = target if target.stem != "index" else ROOT / "examples"
        assert target.exists(), f"{page.name}: there is no {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: no heading for {link}"


def test_the_page_of_the_papers_names_what_exists() -> None:
    page = (ROOT / "docs" / "guide" / "papers.md").read_text(encoding="utf-8")
    tests = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tests/test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 30
    assert not {name for name in named if f"def {name}(" not in tests}
    for script in re.findall(r"`((?:experiments|examples)/\S+\.py)`", page):
        if (ROOT / script.split("/")[0]).exists():  # the experiments are not part of the sdist
            assert (ROOT / script).exists(), f"there is no {script}"
    known = set(re.findall(r"\w+", (ROOT / "tests" / "public_api.txt").read_text(encoding="utf-8")))
    for name in re.findall(r"`(?:sw\.)?([\w.]+)(?:\([^`]*\))?`", page):
        if not name.startswith(("test_", "README")) and not name.endswith((".py", ".md")):
            assert name.split(".")[-1] in known, f"nothing public is called {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_of_a_page_are_not_too_long_to_read(page: Path) -> None:
    written = re.sub(r"<!-- bench:.*?<!-- /bench -->", "", prose(page), flags=re.DOTALL)
    for line in written.splitlines():
        cannot_break = line.startswith(("|", "![", "$$"))  # rows, pictures and formulas
        assert cannot_break or len(line) <= 120, f"{page.name}: {line[:60]}..."


def folders(path: Path) -> list[str]:
    """The folders in a folder, caches aside."""
    return sorted(p.name for p in path.iterdir() if p.is_dir() and not p.name.startswith("__"))


def test_layers_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {it["id"]: it["layers"] for it in settings["tool"]["importlinter"]["contracts"]}
    section = CONTRIBUTING.split("## The layers")[1].split("\n## ")[0]
    picture = section.split("```text\n")[1].split("```")[0].splitlines()
    shown = [re.split(r"\s{2,}", line)[0].split(" | ") for line in picture]
    exist = {*folders(PACKAGE), "_core"}
    kept = [[name.strip(" ()") for name in line.split("|")] for line in contracts["layers"]]
    kept = [[name for name in line if name in exist] for line in kept]
    assert shown == [line for line in kept if line]
    assert exist == set(chain(*shown))
    rooms = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    for layer in exist - {"_core"}:
        for room in folders(PACKAGE / layer):
            assert f"`{room}`" in rooms.get(layer, ""), f"no room {layer}/{room} in CONTRIBUTING.md"
    order = [re.findall(r"\w+", line) for line in contracts["inference"]]
    assert sorted(chain(*order)) == folders(PACKAGE / "inference")
    told = [name for name in re.findall(r"`(\w+)`", rooms["inference"]) if name in chain(*order)]
    assert told == list(chain(*order))
    for folder in folders(KERNELS):
        assert f"`{folder}`" in section, f"no folder cpp/{folder} in CONTRIBUTING.md"
    for place in ("benchmarks", "experiments"):
        row = re.search(rf"^\| `{place}` \| (.*) \|$", section, re.MULTILINE)
        assert row is not None
        for folder in folders(ROOT / place):
            assert f"`{folder}`" in row[1], f"no folder {place}/{folder} in CONTRIBUTING.md"


def test_a_test_is_named_after_a_layer_a_paper_or_what_it_checks_of_the_house() -> None:
    section = CONTRIBUTING.split("## The tests")[1].split("\n## ")[0]
    of_the_house = re.findall(r"`test_(\w+)`", section)
    layers = [layer.removeprefix("_") for layer in folders(PACKAGE)]
    known = (*layers, "theorems", "experiments")
    names = sorted(path.stem.removeprefix("test_") for path in ROOT.glob("tests/test_*.py"))
    strays = [n for n in names if n.split("_")[0] not in known and n not in of_the_house]
    assert not strays, f"named after no layer, and not in CONTRIBUTING.md: {strays}"
    gone = sorted(set(of_the_house) - set(names))
    assert not gone, f"named by CONTRIBUTING.md, but not there: {gone}"
    for helper in re.findall(r"`helpers/([\w.]+)`", section):
        path = ROOT / "tests" / "helpers" / helper
        found = path.exists() or path.with_suffix(".py").exists()
        assert found, f"there is no tests/helpers/{helper}"


def test_no_test_file_imports_another() -> None:
    for path in ROOT.glob("tests/test_*.py"):
        found = re.search(
            r"^(?:from|import) test_\w+", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        assert found is None, f"{path.name}: what two test files need goes to tests/helpers"


@pytest.mark.parametrize("title", WALKS)
def test_files_of_a_walk_lead_to_each_other(title: str) -> None:
    files = [step.file for step in WALKS[title]]
    for step in WALKS[title]:
        assert step.file.is_file(), f"{title}: there is no {step.file}"
        assert files.count(step.file) == 1, f"{title}: {step.file} is visited twice"
        if step.parent is not None:
            assert leads_to(step.parent, step.file), (
                f"{title}: {step.parent} does not lead to {step.file}"
            )


def a_field(side: int = 6, n_labels: int = 4, weight: float = 0.5) -> sw.fields.Field:
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges((side, side))
    return sw.fields.Field(rng.normal(size=(side**2, n_labels))) + sw.fields.Potts(edges, weight)


def fit_a_set_classifier() -> object:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20, 30))
    sw.SetClassifier("jaccard", C=0.1).fit(wide, wide @ rng.normal(size=(30, 4)) > 0)
    X = rng.normal(size=(40, 3))
    return sw.SetClassifier("jaccard", C=0.1).fit(X, X @ rng.normal(size=(3, 4)) > 0)


def boost() -> object:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    return sw.StructBoostClassifier().fit(X, X.argmax(axis=1))


def a_torch_loss() -> object:
    torch = pytest.importorskip("torch")
    sw.torch._cpu.surrogate_of.cache_clear()  # an earlier test may have asked for the surrogate
    scores = torch.linspace(-1.0, 1.0, 8, requires_grad=True)
    return sw.torch.lovasz_hinge(scores, torch.arange(8) % 2).backward()


def draw_on_the_page() -> None:
    pytest.importorskip("starlette")
    from page_client import TestClient

    from setwise.app._http_app import make_app

    port, known = 8123, {"token": "a-token"}
    with TestClient(make_app(**known, port=port), base_url=f"http://127.0.0.1:{port}") as client:
        opened = client.post("/api/drawings", params={**known, "sample": "coins"})
        address = f"/api/drawings/{opened.json()['key']}/events?token={known['token']}"
        with client.websocket_connect(address, headers={"host": f"127.0.0.1:{port}"}) as events:
            for label, y in ((1, 40.0), (0, 5.0)):
                points = [[10.0, y], [30.0, y]]
                stroke = {"kind": "brush", "label": label, "radius": 4.0, "points": points}
                events.send_json({"type": "stroke", "stroke": stroke})
            while b'"alternatives"' not in events.receive_bytes():
                pass


def cut_a_volume() -> None:
    from setwise.dask._volumes import _volume_search

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_volume_search, "BUDGET", 0)  # so that voxels are left to the sweeps
        unary = np.random.default_rng(0).normal(size=(8, 8))
        sw.dask.solve_map(unary, options=sw.dask.VolumeOptions(block=4, sweeps=1), n_jobs=1)


def fit_on_dask() -> object:
    distributed = pytest.importorskip("distributed")
    import dask.array as da

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    rows = (da.from_array(part, chunks=(20, -1)) for part in (X, X @ rng.normal(size=(3, 4)) > 0))
    with distributed.Client(n_workers=1, processes=False, dashboard_address=":0") as client:
        return sw.dask.DaskSetClassifier("jaccard", client=client).fit(*rows)


def decide_for_rows() -> object:
    return sw.decide(np.random.default_rng(0).random((5, 8)), "jaccard").regret_bound


def edit_a_cut() -> bool:
    unary = np.random.default_rng(0).normal(1.0, 1.0, (40, 40))
    return sw.inference.EditableCut(unary, 1.0).add_seeds([[20, 20]], 1).proved


def guarantee_masks() -> object:
    rng = np.random.default_rng(0)
    truths = rng.random((20, 36)) < 0.5
    edges = sw.fields.Potts(sw.fields.grid_edges((6, 6)), 0.3)
    costs = rng.normal(1.0 - 2.0 * truths)
    fields = [sw.fields.Field(np.stack([0 * c, c], axis=1)) + edges for c in costs]
    return sw.conformal.ConformalMasks(alpha=0.1).conformalize(fields, list(truths)).controls_


CALLS = {
    "From scores to coefficients": fit_a_set_classifier,
    "From a field to a labelling": lambda: sw.solve_map(a_field(12, weight=1.0)).label_image,
    "Two labels by one cut": lambda: sw.solve_map(a_field(n_labels=2)).label_image,
    "From a field to marginals": lambda: sw.marginals(a_field(12)).width,
    "To a list": lambda: sw.diverse(a_field(), 3, sw.diversities.HammingBall(20.0, 0.05)).gaps,
    "To alternatives": lambda: sw.diverse(a_field(n_labels=2), 6).gaps,
    "A torch loss on the CPU": a_torch_loss,
    "Boosting": boost,
    "From probabilities to a set": decide_for_rows,
    "From masks to a guarantee": guarantee_masks,
    "A stroke on the page": draw_on_the_page,
    "A stroke on a solved cut": edit_a_cut,
    "A volume larger than memory": cut_a_volume,
    "On dask": fit_on_dask,
}


@pytest.mark.parametrize("title", CALLS)
def test_a_call_runs_what_its_walk_names(title: str) -> None:
    named = {step.file for step in WALKS[title] if step.file.suffix == ".py"}
    missed = set(filter(has_functions, named)) - visited(CALLS[title])
    assert not missed, f"{title}: nothing of {sorted(map(str, missed))} is run"


def test_every_walk_but_that_of_a_device_is_walked() -> None:
    assert set(WALKS) - set(CALLS) == {"A torch loss on CUDA"}


def test_photographs_of_the_first_page_can_be_made_anew(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "landing.py"))
    script["write"](tmp_path, 32, 48)
    made = sorted(path.name for path in tmp_path.iterdir())
    committed = sorted(path.name for path in (ROOT / "docs" / "images").glob("landing_*"))
    assert made == committed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pictures_of_a_page_are_there(page: Path) -> None:
    for link in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", prose(page)):
        assert (page.parent / link).is_file(), f"{page.name}: there is no {link}"
