"""The document: valid, complete, and in step with the code that it describes."""

import re

import pytest
from openapi_spec_validator import OpenAPIV30SpecValidator, validate

from handlers.app import MODULES
from handlers.contract import Contract, problems
from platforms.registry import PLATFORMS
from storage.keys import SCOPES

CONTRACT = Contract()
DOCUMENT = CONTRACT.document
SCHEMAS = DOCUMENT["components"]["schemas"]
SPEC_NAME = {name: address.removeprefix("#/components/schemas/").removesuffix("Target")
             for name, address in SCHEMAS["Target"]["discriminator"]["mapping"].items()}
COMMON = {"account", "caption", "media"}

# The operations and fields of the service's description, under their exact names.
OPERATIONS = {("POST", "/v1/posts"), ("GET", "/v1/posts/{id}"), ("POST", "/v1/generate"), ("POST", "/v1/media/from-url"),
              ("POST", "/v1/media/upload-url"), ("GET", "/v1/accounts"), ("GET", "/v1/clients"), ("GET", "/v1/platforms"),
              ("GET", "/v1/health"), ("PATCH", "/v1/ideas/{id}"), ("POST", "/v1/ideas"), ("GET", "/v1/ideas/today")}
FIELDS = {
    "PostOperation": {"id", "status", "targets"},
    "TargetResult": {"platform", "status", "postId", "url", "error"},
    "PublishRequest": {"targets", "caption", "clientId", "media", "scheduleAt"},
    "RecentIdea": {"id", "content", "topic", "platform", "sourceUrl", "createdAt"},
    "UpdateIdeaRequest": {"content", "topic", "platform"},
    "MediaRecord": {"publicUrl", "key", "uploadUrl", "mimeType", "bytes", "width", "height", "duration"},
    "Team": {"id", "name"},
    "Account": {"platform", "username", "displayName", "profilePicture"},
    "Client": {"id", "name", "status"},
    "PlatformCapability": {"platform", "captionLimit", "maxMediaItems", "mediaTypes", "titleLimit", "descriptionLimit",
                           "media"},
    "Health": {"status", "version"},
    "GeneratedCaption": {"text", "tokensUsed"},
    "GenerateRequest": {"topic", "platform", "tone", "language"},
    "Error": {"code", "message"},
}


def nodes(node, path=""):
    """Every object of the document with its pointer."""
    if isinstance(node, dict):
        yield path, node
        for name, inner in node.items():
            yield from nodes(inner, f"{path}/{name}")
    elif isinstance(node, list):
        for position, inner in enumerate(node):
            yield from nodes(inner, f"{path}/{position}")


def test_it_is_valid_openapi():
    validate(DOCUMENT, cls=OpenAPIV30SpecValidator)
    assert DOCUMENT["info"]["version"] == "1.0.0"


def test_it_has_all_operations_of_the_description():
    assert {(operation.method, operation.path) for operation in CONTRACT.operations.values()} >= OPERATIONS


@pytest.mark.parametrize("schema", FIELDS)
def test_it_has_all_fields_of_the_description(schema):
    assert SCHEMAS[schema]["properties"].keys() >= FIELDS[schema]


@pytest.mark.parametrize("operation", CONTRACT.operations.values(), ids=lambda operation: operation.id)
def test_each_operation_has_exactly_one_handler_of_its_name(operation):
    assert sum(hasattr(module, operation.id) for module in MODULES) == 1
    assert operation.public or operation.scope in SCOPES


@pytest.mark.parametrize("operation", CONTRACT.operations.values(), ids=lambda operation: operation.id)
def test_each_operation_declares_its_failures(operation):
    responses = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"].keys()
    needed = {"400", "415", "417", "431", "500"} | (set() if operation.public else {"401", "403", "422", "429", "503"})
    needed |= {"408", "413"} if operation.body else set()
    assert responses >= needed


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_value_is_bounded(name):
    for path, node in nodes(SCHEMAS[name], name):
        kind = node.get("type")
        if kind == "string":
            assert "enum" in node or {"maxLength"} <= node.keys() and node.keys() & {"pattern", "format"}, path
        elif kind == "integer":
            assert {"format", "minimum", "maximum"} <= node.keys(), path
        elif kind == "number":
            assert {"minimum", "maximum"} <= node.keys(), path
        elif kind == "array":
            assert "maxItems" in node, path


def test_requests_are_closed_and_answers_are_open():
    requests = {name for name in SCHEMAS
                if re.search(r"(Request|Options|Target)$", name) and SCHEMAS[name].get("type") == "object"}
    assert {name for name in requests if SCHEMAS[name].get("additionalProperties") is not False} == set()
    responses = {name for name in SCHEMAS if name.endswith("Response")}
    assert {name for name in responses if "additionalProperties" in SCHEMAS[name]} == set()


def test_every_object_of_a_target_is_closed():
    assert [path for name in SCHEMAS if name.endswith("Options") for path, node in nodes(SCHEMAS[name], name)
            if node.get("type") == "object" and node.get("additionalProperties") is not False] == []


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_a_target_takes_what_its_platform_takes(platform):
    name = SPEC_NAME[platform.name]
    assert SCHEMAS[f"{name}PostType"]["enum"] == list(platform.post_types)
    assert SCHEMAS[f"{name}Target"]["properties"]["platform"]["enum"] == [platform.name]
    known = {*platform.options, *(option for kind in platform.post_types.values() for option in (*kind.options, *kind.required))}
    assert SCHEMAS[f"{name}Options"]["properties"].keys() == known | COMMON


def test_platforms_stand_in_one_order_everywhere():
    assert SCHEMAS["PlatformId"]["enum"] == [platform.name for platform in PLATFORMS] == list(SPEC_NAME)
    assert [one["$ref"] for one in SCHEMAS["Target"]["oneOf"]] == [*SCHEMAS["Target"]["discriminator"]["mapping"].values()]


def examples():
    """Every example of a request or answer with the schema that it must satisfy."""
    for path, node in nodes(DOCUMENT["paths"], "paths"):
        if "examples" in node and "schema" in node:
            for name, example in node["examples"].items():
                yield pytest.param(node["schema"], example, id=f"{path.split('/v1/')[-1]}:{name}")
    for response, spec in DOCUMENT["components"]["responses"].items():
        for name, example in spec["content"]["application/json"]["examples"].items():
            yield pytest.param(spec["content"]["application/json"]["schema"], example, id=f"{response}:{name}")


@pytest.mark.parametrize("schema, example", list(examples()))
def test_every_example_satisfies_its_schema(schema, example):
    named = DOCUMENT["components"]["examples"]
    value = example["value"] if "value" in example else named[example["$ref"].rsplit("/", 1)[1]]["value"]
    assert problems(CONTRACT.validator(schema), value, "") == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_example_of_a_value_satisfies_its_schema(name):
    for path, node in nodes(SCHEMAS[name], name):
        if "type" in node and "example" in node:
            assert problems(CONTRACT.validator(node), node["example"], "") == [], path


def test_every_body_has_examples_with_names():
    bodies = [(path, node) for path, node in nodes(DOCUMENT) if path.endswith("/content/application/json")]
    assert len(bodies) >= 40
    assert [path for path, body in bodies if not body.get("examples")] == []
    assert [path for path, body in bodies for example in body["examples"].values()
            if not {"$ref", "summary"} & example.keys()] == []


def test_whatever_is_made_leads_on():
    leads = {"publish_post": {"get_post", "update_post", "cancel_post"}, "create_idea": {"update_idea"},
             "connect_account": {"list_accounts"}, "retry_post": {"get_post"},
             "create_webhook": {"get_webhook", "update_webhook", "list_deliveries", "delete_webhook"}}
    for operation in map(CONTRACT.operations.get, leads):
        answers = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
        made = next(answer for status, answer in answers.items() if status.startswith("2"))
        made = DOCUMENT["components"]["responses"][made["$ref"].rsplit("/", 1)[1]] if "$ref" in made else made
        assert {link["operationId"] for link in made["links"].values()} == leads[operation.id]


def test_every_answer_says_its_headers():
    places = re.compile(r"/paths/.*/responses/[0-9]{3}|/components/responses/\w+")
    answers = [(path, node) for path, node in nodes(DOCUMENT) if places.fullmatch(path)]
    common = {"X-Request-Id", "Cache-Control", "Access-Control-Allow-Origin"}
    ours = [(path, node) for path, node in answers if "/callbacks/" not in path]
    assert [path for path, node in ours if "$ref" not in node and not node["headers"].keys() >= common] == []


def test_no_component_is_unused():
    used = {node["$ref"] for _, node in nodes(DOCUMENT) if isinstance(node.get("$ref"), str)}
    used |= {ref for _, node in nodes(DOCUMENT) for ref in node.get("mapping", {}).values() if isinstance(ref, str)}
    made = {f"#/components/{kind}/{name}" for kind, some in DOCUMENT["components"].items() if kind != "securitySchemes"
            for name in some}
    assert made - used == set()
