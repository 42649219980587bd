"""Compiles the Java client and a program that uses it, and runs that: for machines that have a JDK (javac, java)."""

from pathlib import Path

import openapi_generator_cli
from tests.sdk.generated import HERE, run
from tests.service import Http

# The generator's own jar holds Jackson as the client wants it; of jakarta.annotation-api, which Maven brings, this is all.
JACKSON = Path(openapi_generator_cli.__file__).parent / "openapi-generator.jar"
GENERATED = "package javax.annotation; public @interface Generated { String[] value(); String date() default \"\"; " \
            "String comments() default \"\"; }"


def test_the_story(java_client, integrator, tmp_path):
    (tmp_path / "Generated.java").write_text(GENERATED)
    sources = (java_client / "src" / "main").rglob("*.java")
    run("javac", "-nowarn", "-cp", JACKSON, "-d", tmp_path / "out", tmp_path / "Generated.java",
        HERE / "stories" / "Story.java", *sources, folder=tmp_path)
    photo = Http(integrator["URL"], integrator["KEY"]).uploaded((tmp_path / "photo.jpg").read_bytes(), "image/jpeg")
    said = run("java", "-cp", f"{JACKSON}:{tmp_path / 'out'}", "Story", folder=tmp_path, PHOTO=photo, **integrator)
    assert said.split() == ["scheduled", "canceled", "404"]
