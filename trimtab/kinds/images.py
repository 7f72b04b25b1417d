"""What a container image's name tells about the program inside."""

from __future__ import annotations

import re

_RUNTIMES = "jdk|jre|openjdk|temurin|corretto|amazoncorretto"
_PROGRAMS = "java|jvm|zulu|graalvm|tomcat|jetty|wildfly|spring|springboot|kafka|elasticsearch"
_REPOSITORY_WORD = re.compile(rf"({_RUNTIMES}|{_PROGRAMS})\d*")
_TAG_WORD = re.compile(rf"({_RUNTIMES})\d*")
_BETWEEN_WORDS = re.compile(r"[/_.-]")


def is_jvm(image: str) -> bool:
    """Whether a JVM runs in it: by whole words of the repository, else by a tag such as 17-jre; hosts do not count."""
    repository, tag = _repository_and_tag(image.lower())
    return _has_word(_REPOSITORY_WORD, repository) or _has_word(_TAG_WORD, tag)


def _repository_and_tag(image: str) -> tuple[str, str]:
    """`host:port/path:tag@digest` without host and digest; a first part is a host by a dot, a port or its name."""
    named = image.partition("@")[0]
    first, slash, rest = named.partition("/")
    is_host = slash and (first == "localhost" or "." in first or ":" in first)
    repository, _, tag = (rest if is_host else named).partition(":")
    return repository, tag


def _has_word(known: re.Pattern[str], text: str) -> bool:
    return any(known.fullmatch(word) for word in _BETWEEN_WORDS.split(text))
