"""The files in ``deploy`` name flags, routes, settings and metrics that the server has."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from pyserini_compneg.commands.serve import _parser
from pyserini_compneg.serve.options import ServeOptions
from pyserini_compneg.serve.settings import read_server_settings
from pyserini_compneg.support.options import given_options

DEPLOY = Path(__file__).parents[2] / "deploy"
IMAGE = (DEPLOY / "Dockerfile").read_text("utf-8")
UNIT = (DEPLOY / "compneg.service").read_text("utf-8")
MANIFESTS = {entry["kind"]: entry for entry in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))}
POD = MANIFESTS["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
SCRAPED = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text("utf-8"))
RULES = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text("utf-8"))["groups"][0]["rules"]

COMMANDS = {
    "image": json.loads(re.search(r"^CMD (.*)$", IMAGE, re.M)[1]),
    "unit": shlex.split(re.search(r"^ExecStart=\S+/compneg (.*)$", UNIT, re.M)[1]),
    "pod": CONTAINER["args"],
}


@pytest.mark.parametrize("where", COMMANDS)
def test_the_server_has_the_flags(where):
    verb, *flags = COMMANDS[where]
    args = _parser().parse_args(flags)
    options = ServeOptions(**given_options(ServeOptions, args))
    assert (verb, args.config, options.port) == ("serve", "/etc/compneg/server.yaml", 8081)
    assert options.host == ("127.0.0.1" if where == "unit" else "0.0.0.0")


def test_settings_are_read(tmp_path):
    (tmp_path / "pod.yaml").write_text(MANIFESTS["Secret"]["stringData"]["server.yaml"])
    for path in (DEPLOY / "server.yaml", tmp_path / "pod.yaml"):
        settings = read_server_settings(path)
        assert settings.indexes["films"].path == "/srv/indexes/films"
        assert (settings.needs_key, settings.api_keys) == (True, ())  # no key that everybody knows
    assert {"name": "settings", "secret": {"secretName": MANIFESTS["Secret"]["metadata"]["name"]}} in POD["volumes"]
    mounts = {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts == {"/etc/compneg", "/srv/indexes", "/tmp"}
    assert {volume.split(":")[1] for volume in COMPOSE["compneg"]["volumes"]} | {"/tmp"} == {
        "/etc/compneg",
        "/srv/indexes",
        *COMPOSE["compneg"]["tmpfs"],
    }


FOLLOWING = [*yaml.safe_load_all((DEPLOY / "kubernetes-followers.yaml").read_text("utf-8"))]
FOLLOWING_COMPOSE = yaml.safe_load((DEPLOY / "compose-followers.yaml").read_text("utf-8"))


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_followers_follow_the_writer_and_clients_reach_only_them(tmp_path, where):
    if where == "compose":
        services = FOLLOWING_COMPOSE["services"]
        paths = [DEPLOY / name / "server.yaml" for name in ("writer", "follower")]
        commands = [COMMANDS["image"]]
        servers = {"writer": ("writer", "written"), "first": ("follower", "first"), "second": ("follower", "second")}
        for name, (settings, volume) in servers.items():  # followers cannot read the writer's keys
            mounted = [f"./{settings}:/etc/compneg:ro", f"{volume}:/srv/indexes"]
            assert [mount.partition(" ")[0] for mount in services[name]["volumes"]] == mounted
            assert "command" not in services[name]
        assert {"written", "first", "second"} < FOLLOWING_COMPOSE["volumes"].keys()
        assert services["proxy"]["environment"]["SERVERS"] == "first:8081 second:8081"
        assert "{$SERVERS:" in (DEPLOY / "Caddyfile").read_text("utf-8")
        writer = "http://writer:8081"
    else:
        named = {(entry["kind"], entry["metadata"]["name"]): entry for entry in FOLLOWING}
        pods = {name: named["Deployment", name]["spec"]["template"] for name in ("compneg-writer", "compneg")}
        paths = [tmp_path / f"{name}.yaml" for name in pods]
        for path, name in zip(paths, pods, strict=True):
            path.write_text(named["Secret", name]["stringData"]["server.yaml"])
            assert named["Service", name]["spec"]["selector"] == pods[name]["metadata"]["labels"] == {"app": name}
            settings, indexes, _ = pods[name]["spec"]["volumes"]
            assert settings["secret"] == {"secretName": name}
            assert indexes.keys() == {"name", "persistentVolumeClaim" if name == "compneg-writer" else "emptyDir"}
            assert "readOnly" not in str(pods[name]["spec"]["containers"][0]["volumeMounts"][1])
        commands = [pod["spec"]["containers"][0]["args"] for pod in pods.values()]
        writer = "http://compneg-writer"
    written, copied = map(read_server_settings, paths)
    (index,) = copied.indexes.values()
    assert index.follows.url == f"{writer}/v1/{next(iter(written.indexes))}"
    assert index.path == written.indexes["films"].path == "/srv/indexes/films"
    for settings in (written, copied):  # no key that everybody knows
        assert (settings.needs_key, settings.api_keys, settings.write_keys, settings.copy_keys) == (True, (), (), ())
    assert written.offers_copies
    for command in commands:
        args = _parser().parse_args(command[1:])
        assert (command[0], args.config, args.host) == ("serve", "/etc/compneg/server.yaml", "0.0.0.0")


def test_routes_and_metrics_are_those_of_the_server(client):
    probes = {CONTAINER[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
    caddy = (DEPLOY / "Caddyfile").read_text("utf-8")
    probes |= {*re.findall(r"127\.0\.0\.1:8081(/\w+)", IMAGE), *re.findall(r"(?:health_uri|path) (/\w+)", caddy)}
    assert probes == {"/health", "/metrics"}
    assert {client.get(path).status_code for path in probes} == {200}
    client.get("/v1/films/search?query=spy")
    text = client.get("/metrics").text
    for rule in RULES:
        names = set(re.findall(r"\b(?:compneg|process)_\w+\b", rule["expr"]))
        assert names or rule["alert"] == "CompnegDown"
        assert {name for name in names if not re.search(rf"^{name}[{{ ]", text, re.M)} == set()
        for route in re.findall(r'route="(.*?)"', rule["expr"]):
            assert f'compneg_request_seconds_count{{route="{route}"}}' in text
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            assert label in ("instance", "deployment") or f'{label}="films"' in text


def test_alerts_are_about_the_pods_of_the_manifest():
    (job,) = SCRAPED["scrape_configs"]
    kept = {rule["source_labels"][0]: rule["regex"] for rule in job["relabel_configs"] if rule["action"] == "keep"}
    deployment = MANIFESTS["Deployment"]
    assert kept == {
        "__meta_kubernetes_pod_label_app": deployment["spec"]["template"]["metadata"]["labels"]["app"],
        "__meta_kubernetes_pod_container_port_name": CONTAINER["ports"][0]["name"],
    }
    (down,) = (rule["expr"] for rule in RULES if rule["alert"] == "CompnegDown")
    assert set(re.findall(r'job="(.*?)"', down)) == {job["job_name"]}
    assert set(re.findall(r'deployment="(.*?)"', down)) == {deployment["metadata"]["name"]}
    assert SCRAPED["rule_files"] == ["prometheus-rules.yaml"]


def test_alerts_on_recorded_samples(tmp_path):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    config = (DEPLOY / "prometheus.yaml").read_text("utf-8")
    (elsewhere,) = re.findall(r"static_configs: .*?(?= in place)", config)  # Debian's promtool knows no Kubernetes
    (tmp_path / "config.yaml").write_text(config.replace("kubernetes_sd_configs: [{role: pod}]", elsewhere))
    shutil.copy(DEPLOY / "prometheus-rules.yaml", tmp_path)
    cases = Path(__file__).with_name("alerts.yaml").read_text("utf-8")
    (tmp_path / "alerts.yaml").write_text(cases.replace("RULES", "prometheus-rules.yaml"))
    for command in (("check", "config", "--syntax-only", "config.yaml"), ("test", "rules", "alerts.yaml")):
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout


def test_files_that_the_image_copies_are_in_its_context():
    kept = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[0] == "!"}
    copied = set()
    for line in re.findall(r"^COPY (?!--)(.*)$", IMAGE, re.M):
        copied.update(line.split()[:-1])
    assert copied == kept
    assert all((DEPLOY.parent / name).exists() for name in copied)
    assert COMPOSE["compneg"]["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile"}
    assert f"USER {POD['securityContext']['runAsUser']}\n" in IMAGE


@pytest.mark.parametrize(
    "command",
    [
        ["caddy", "validate", "--adapter", "caddyfile", "--config", "Caddyfile"],
        ["promtool", "check", "rules", "prometheus-rules.yaml"],
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "./compneg.service"],
    ],
    ids=lambda command: command[0],
)
def test_the_programs_that_read_the_files_accept_them(command):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
