"""What is shipped for clusters: manifests of the structure that Kubernetes asks for, scripts that do what they say."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "packaging" / "cluster"

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|Ki|Mi|Gi)?")

# Keys of the API's batch/v1 and apps/v1 that are used here; another one is a slip of the pen.
KEYS = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "Job": {"completionMode", "completions", "parallelism", "backoffLimitPerIndex", "maxFailedIndexes",
            "activeDeadlineSeconds", "template"},
    "DaemonSet": {"selector", "template"},
    "pod": {"restartPolicy", "topologySpreadConstraints", "affinity", "containers", "initContainers", "volumes",
            "nodeSelector", "tolerations"},
    "container": {"name", "image", "command", "env", "resources", "volumeMounts"},
}  # fmt: skip


def manifests():
    yaml = pytest.importorskip("yaml")
    files = sorted(FOLDER.glob("*.yaml"))
    assert len(files) == 3
    return {file.name: yaml.safe_load(file.read_text()) for file in files}


def containers(pod):
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_manifests_have_the_structure_of_their_kinds():
    for name, found in manifests().items():
        kind = found["kind"]
        assert set(found) == KEYS[""] and set(found["spec"]) <= KEYS[kind], name
        assert found["apiVersion"] == {"Job": "batch/v1", "DaemonSet": "apps/v1"}[kind]
        assert NAME.fullmatch(found["metadata"]["name"]), name
        template = found["spec"]["template"]
        pod, labels = template["spec"], template["metadata"]["labels"]
        assert set(pod) <= KEYS["pod"], (name, set(pod))
        if kind == "Job":
            spec = found["spec"]
            assert pod["restartPolicy"] in ("Never", "OnFailure"), "a Job's pods may not be Always"
            assert spec["completionMode"] == "Indexed" and 0 < spec["parallelism"] <= spec["completions"]
            # Per index failures need pods that are not restarted.
            assert pod["restartPolicy"] == "Never" and spec["backoffLimitPerIndex"] >= 0
        else:
            assert found["spec"]["selector"]["matchLabels"].items() <= labels.items(), "the selector has to match"
            assert pod.get("restartPolicy", "Always") == "Always"


def test_containers_are_whole():
    for name, found in manifests().items():
        pod = found["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for one in containers(pod):
            assert set(one) <= KEYS["container"] and NAME.fullmatch(one["name"]) and one["image"], name
            for amounts in one["resources"].values():
                assert set(amounts) == {"cpu", "memory"} and all(QUANTITY.fullmatch(v) for v in amounts.values())
            assert {mount["name"] for mount in one.get("volumeMounts", [])} <= volumes, name
            words = " ".join(one.get("command", []))
            known = {variable["name"] for variable in one.get("env", [])}
            assert set(re.findall(r"\$\(?([A-Z_]+)", words)) <= known, (name, words)
            for variable in one.get("env", []):
                path = variable["valueFrom"]["fieldRef"]["fieldPath"]
                assert re.fullmatch(r"spec\.nodeName|metadata\.annotations\['[a-z0-9./-]+'\]", path)
            if "hourglass noise" in words and found["kind"] == "Job":
                # CPUs of its own only where requests equal limits, in whole CPUs.
                assert one["resources"]["requests"] == one["resources"]["limits"]
                assert one["resources"]["limits"]["cpu"].isdigit()


def test_no_node_gets_two_pods():
    found = manifests()["kubernetes-noise-job.yaml"]
    template = found["spec"]["template"]
    rules = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert all(
        rule["topologyKey"] == "kubernetes.io/hostname"
        and rule["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        for rule in rules
    )


def test_the_parts_are_as_many_as_completions():
    found = manifests()["kubernetes-sweep-job.yaml"]
    words = found["spec"]["template"]["spec"]["containers"][0]["command"]
    assert words[words.index("--shard") + 1] == f"$(PART)/{found['spec']['completions']}"


@pytest.mark.parametrize("name", ["fleet.sbatch", "sweep.sbatch", "node-check", "slurm-prolog", "hourglass.nhc"])
def test_scripts_are_read_by_their_shells(name):
    file = FOLDER / name
    shell = "bash" if name.endswith(".nhc") else "sh"
    if not shutil.which(shell):
        pytest.skip(f"no {shell} [lacks: command -v {shell}]")
    subprocess.run([shell, "-n", file], check=True)
    assert name.endswith(".nhc") or os.access(file, os.X_OK)


@pytest.fixture
def tools(tmp_path):
    """A folder of programs that go before others, and one that writes how it was called."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def make(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    return make, {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("status", "says", "code"),
    [(0, "hourglass: quiet: longest gaps 1.5 (us), limit 50us", 0),
     (1, "hourglass: NOT quiet: longest gaps 1.5 (us), limit 50us", 1),
     (2, "hourglass: not measured: no such thing", 3), (3, "hourglass: not measured: no such thing", 3)],
)  # fmt: skip
def test_the_check_says_one_line_and_its_code(tools, status, says, code):
    make, environment = tools
    table = "printf '     Maximum:\\t 1.5 (us)\\n'" if status < 2 else "echo 'no such thing' >&2"
    make("hourglass", f"{table}; exit {status}")
    done = subprocess.run([FOLDER / "node-check"], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (f"{says}\n", "", code)


@pytest.mark.parametrize(("status", "drains"), [(0, 0), (1, 1), (3, 0)])
def test_only_a_node_that_is_not_quiet_is_drained(tools, tmp_path, status, drains):
    make, environment = tools
    make("check", f"echo 'hourglass: a line'; exit {status}")
    make("logger", "exit 0")
    environment = {**environment, "HOURGLASS_NODE_CHECK": str(tmp_path / "tools" / "check")}
    done = subprocess.run([FOLDER / "slurm-prolog"], env=environment, capture_output=True, text=True)
    assert done.returncode == drains and done.stdout == ("print hourglass: a line\n" if drains else "")
    if shutil.which("bash"):
        text = f"die() {{ echo \"$*\"; }}; . {FOLDER / 'hourglass.nhc'}; check_hourglass 50us"
        done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True)
        assert done.returncode == drains and ("hourglass: a line" in done.stdout) == bool(drains)


def test_the_check_works_with_the_command():
    command = os.environ.get("HOURGLASS") or shutil.which("hourglass")
    if not command:
        pytest.skip("no command hourglass [lacks: test -x \"$HOURGLASS\" || command -v hourglass]")
    environment = {**os.environ, "HOURGLASS": command, "HOURGLASS_MAX_GAP": "1h"}
    done = subprocess.run([FOLDER / "node-check"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"hourglass: quiet: longest gaps [0-9. ]+\(us\), limit 1h\n", done.stdout), done.stdout
    done = subprocess.run([FOLDER / "node-check"], env={**environment, "HOURGLASS_MAX_GAP": "nonsense"}, capture_output=True, text=True)
    assert done.returncode == 3 and done.stdout.count("\n") == 1, done.stdout


def test_slurm_is_asked_for_what_is_meant(tools, tmp_path):
    """With programs in the place of srun and hourglass that write how they were called."""
    make, environment = tools
    make("srun", 'while case "$1" in --*) true;; *) false;; esac; do shift; done; SLURMD_NODENAME=n7 exec "$@"')
    make("hourglass", 'printf "%s\\n" "$*"')
    environment = {**environment, "SLURM_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": "17", "SLURM_ARRAY_TASK_MAX": "1999"}
    said = subprocess.run([FOLDER / "fleet.sbatch"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == "noise -D10s -q --best-effort -o hourglass-5/n7\n"
    said = subprocess.run([FOLDER / "sweep.sbatch"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == "sweep experiment.toml --threads 1 -q --shard 17/2000 -o parts\n"
