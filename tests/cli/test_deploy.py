"""The manifest for Kubernetes has fields that Kubernetes knows, and names things that are there."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

DEPLOY = Path(__file__).parents[2] / "deploy"


def objects() -> dict[str, dict[str, Any]]:
    found = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    by_kind = {thing["kind"]: thing for thing in found}
    assert len(by_kind) == len(found)
    return by_kind


def read_strictly(spark: SparkSession, thing: dict[str, Any]) -> None:
    """Into the class that Spark's own client of Kubernetes has for it, which fails on a field that the class does not have."""
    jvm: Any = spark._jvm
    jackson = jvm.com.fasterxml.jackson.databind
    # It is annotations that let these classes take any field.
    mapper = jackson.ObjectMapper().configure(jackson.MapperFeature.USE_ANNOTATIONS, False)
    mapper.configure(jackson.MapperFeature.ALLOW_COERCION_OF_SCALARS, False)
    kinds = jvm.io.fabric8.kubernetes.client.utils.KubernetesSerialization()
    mapper.readValue(json.dumps(thing), kinds.getRegisteredKubernetesResource(thing["apiVersion"], thing["kind"]))


def test_kubernetes_knows_every_field_of_the_manifest(spark: SparkSession) -> None:
    things = objects()
    for thing in (*things.values(), yaml.safe_load(things["ConfigMap"]["data"]["pod.yaml"])):
        read_strictly(spark, thing)


def test_a_field_that_is_misspelt_or_of_another_type_is_seen(spark: SparkSession) -> None:
    job = objects()["Job"]
    job["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(Py4JJavaError, match='Unrecognized field "volumeMount"'):
        read_strictly(spark, job)
    service = objects()["Service"]
    service["spec"]["ports"][0]["port"] = "7078"
    with pytest.raises(Py4JJavaError, match="Cannot coerce String"):
        read_strictly(spark, service)


def test_every_name_in_the_manifest_is_that_of_an_object_in_it() -> None:
    things = objects()
    names = {kind: thing["metadata"]["name"] for kind, thing in things.items()}
    space = names["Namespace"]
    assert {t["metadata"]["namespace"] for kind, t in things.items() if kind != "Namespace"} == {space}
    assert things["RoleBinding"]["roleRef"]["name"] == names["Role"]
    assert things["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": names["ServiceAccount"], "namespace": space}
    ]
    template = things["Job"]["spec"]["template"]
    pod, labels = template["spec"], template["metadata"]["labels"]
    driver = pod["containers"][0]
    assert pod["serviceAccountName"] == names["ServiceAccount"]
    assert things["Service"]["spec"]["selector"].items() <= labels.items()
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in driver["volumeMounts"]}
    assert volumes.keys() == mounts.keys()
    assert volumes["lanes"]["persistentVolumeClaim"]["claimName"] == names["PersistentVolumeClaim"]
    assert volumes["executor"]["configMap"]["name"] == names["ConfigMap"]


def test_what_the_driver_is_told_fits_the_objects() -> None:
    things = objects()
    driver = things["Job"]["spec"]["template"]["spec"]["containers"][0]
    told = dict(word.removeprefix("--conf=").split("=", 1) for word in driver["args"] if word.startswith("--conf="))
    service, space = things["Service"], things["Namespace"]["metadata"]["name"]
    assert told["spark.kubernetes.namespace"] == space
    assert told["spark.driver.host"] == f"{service['metadata']['name']}.{space}.svc"
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert ports == {port["name"]: port["containerPort"] for port in driver["ports"]}
    assert [int(told[f"spark.driver.{name}"]) for name in ("port", "blockManager.port")] == list(ports.values())
    assert told["spark.kubernetes.container.image"] == driver["image"]
    mounts = {mount["name"]: mount["mountPath"] for mount in driver["volumeMounts"]}
    lanes = "spark.kubernetes.executor.volumes.persistentVolumeClaim.lanes"
    assert told[f"{lanes}.options.claimName"] == things["PersistentVolumeClaim"]["metadata"]["name"]
    assert told[f"{lanes}.mount.path"] == mounts["lanes"]
    assert driver["args"][-1].startswith(f"{mounts['lanes']}/")
    template = Path(told["spark.kubernetes.executor.podTemplateFile"])
    assert str(template.parent) == mounts["executor"]
    executor = yaml.safe_load(things["ConfigMap"]["data"][template.name])
    assert executor["spec"]["securityContext"] == things["Job"]["spec"]["template"]["spec"]["securityContext"]
    assert driver["env"][0]["name"] in told["spark.kubernetes.driver.pod.name"]
    script = Path(driver["args"][-2])
    assert (DEPLOY.parent / script.relative_to("/opt/elastream")).is_file()


def test_the_image_has_every_package_that_entry_points_name() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project["entry-points"].values()
    packages = {place.partition(".")[0] for group in groups for place in group.values()} | {"elastream"}
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert packages == {"elastream", "elastream_lab"}
    assert all(f"COPY {package} {package}\n" in image for package in packages)
