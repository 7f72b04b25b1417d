"""What an image's name tells, by table."""

from __future__ import annotations

import pytest

from trimtab.kinds.images import is_jvm


@pytest.mark.parametrize(
    "image",
    [
        "openjdk",
        "openjdk:17",
        "eclipse-temurin",
        "eclipse-temurin:21",
        "amazoncorretto:11",
        "tomcat:10.1",
        "my/java-app",
        "my/java-app:1.0@sha256:0123456789abcdef",
        "gcr.io/distroless/java17-debian12",
        "registry.example.com:5000/team/java/web:1.2",
        "localhost/jetty",
        "confluentinc/cp-kafka",
        "docker.elastic.co/elasticsearch/elasticsearch:8.15.0",
        "ghcr.io/team/web:17-jre",
        "maven:3.9-eclipse-temurin-21",
        "team/web:1.4.2-JDK17",
        "team/spring_boot",
    ],
)
def test_a_jvm_runs_in(image: str) -> None:
    assert is_jvm(image)


@pytest.mark.parametrize(
    "image",
    [
        "",
        "javascript-ui",
        "javascript-ui:java",
        "my/javascript",
        "node",
        "node:20",
        "nginx:1.27",
        "java.example.com/team/web",
        "kafka.example.com:5000/team/web:1.0",
        "team/web@sha256:0123456789abcdef",
        "team/web:fix-java-client",
        "team/springfield",
    ],
)
def test_no_jvm_runs_in(image: str) -> None:
    assert not is_jvm(image)
