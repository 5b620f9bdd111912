"""LangChain's tools as cards: what of a tool is taken, what is believed, and what a bad reference is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, Tool, tool
from pydantic import BaseModel, Field

from data.cards import Risk, Trust
from data.errors import InputError
from data.importers import cards_of_langchain, import_catalog

MODULE = """
from langchain_core.tools import StructuredTool, tool

@tool
def get_weather(city: str) -> str:
    "Get the weather of a city."
    return city

TOOLS = [get_weather]

def made(): return (get_weather,)
async def made_later(): return [get_weather]
def broken(): raise RuntimeError("no key\\nin sight")

class Desk:
    tools = [get_weather]

number = 5
mixed = [get_weather, made]
"""


class City(BaseModel):
    name: str = Field(description="As people write it")
    country: str | None = None


class WeatherArguments(BaseModel):
    """Where, and for how long."""

    city: City
    days: int = Field(3, description="How many")


def answer(**arguments: Any) -> str:
    return str(arguments)


def weather(**more: Any) -> BaseTool:
    given: dict[str, Any] = {"name": "get_weather", "description": "Get the weather.", "args_schema": WeatherArguments}
    return StructuredTool(**given | {"func": answer} | more)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of tools in the working directory, by name; forgotten again at the end."""
    (tmp_path / "crib_desk.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield "crib_desk"
    assert sys.path == path
    sys.modules.pop("crib_desk", None)


def test_arguments_of_a_pydantic_model_become_a_schema() -> None:
    (card,) = cards_of_langchain([weather()], domain="shop")
    assert (card.tool_id, card.name, card.domain, card.description) == (
        "shop.get_weather",
        "get_weather",
        "shop",
        "Get the weather.",
    )
    assert card.parameter_names == ("city", "days")
    city, days = card.input_schema["properties"].values()
    assert card.input_schema["required"] == ["city"]
    assert city["properties"]["name"] == {"type": "string", "description": "As people write it"}
    assert days == {"default": 3, "description": "How many", "type": "integer"}


def test_a_json_schema_is_taken_as_it_is() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "minLength": 1}}, "required": ["q"]}
    (card,) = cards_of_langchain([weather(args_schema=schema)])
    assert card.input_schema == schema


def test_a_tool_of_one_text_takes_it_under_the_name_that_langchain_gives_it() -> None:
    (card,) = cards_of_langchain([Tool(name="search", description="Search the web.", func=lambda text: text)])
    assert card.parameter_names == ("__arg1",)


def test_arguments_that_the_program_fills_in_are_not_shown_to_a_model() -> None:
    @tool
    def find_orders(text: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Find orders."""
        return text + user

    (card,) = cards_of_langchain([find_orders])
    assert card.parameter_names == ("text",)


def test_tags_are_capabilities_and_what_is_not_read_is_counted(desk: str, tmp_path: Path) -> None:
    (tmp_path / "crib_tagged.py").write_text(
        MODULE
        + "get_weather.tags, get_weather.metadata, get_weather.return_direct = ['forecast'], {'team': 'sky'}, True\n"
    )
    catalog, report = import_catalog("crib_tagged:TOOLS", "langchain")
    assert catalog.cards[0].capabilities == ("forecast",)
    assert report.ignored == {"metadata.team": 1, "return_direct": 1}


def test_a_tool_without_a_description_is_taken_without_one() -> None:
    (card,) = cards_of_langchain([weather(description="", args_schema={"type": "object", "properties": {}})])
    assert card.description == ""


@pytest.mark.parametrize(
    ("metadata", "trusted"),
    [
        (None, Risk.READ_ONLY),
        ({"team": "sky"}, Risk.READ_ONLY),
        ({"readOnlyHint": True}, Risk.READ_ONLY),
        ({"readOnlyHint": False}, Risk.DESTRUCTIVE),
        ({"readOnlyHint": False, "destructiveHint": False}, Risk.WRITE),
    ],
)
def test_only_a_trusted_source_is_believed_about_its_risk(metadata: dict[str, Any] | None, trusted: Risk) -> None:
    tools = [weather(metadata=metadata)]
    assert cards_of_langchain(tools, trust=Trust.TRUSTED)[0].risk is trusted
    assert cards_of_langchain(tools)[0].risk is Risk.DESTRUCTIVE


@pytest.mark.parametrize("attribute", ["TOOLS", "made", "made_later", "Desk.tools", "get_weather"])
def test_a_list_a_function_that_returns_one_and_a_single_tool_are_imported(desk: str, attribute: str) -> None:
    catalog, report = import_catalog(Path(f"{desk}:{attribute}"), "langchain")
    assert catalog.ids == ("crib_desk.get_weather",)
    assert (report.imported, report.format) == (1, "langchain")


def test_a_server_and_a_tenant_name_the_tools(desk: str) -> None:
    catalog, _ = import_catalog(f"{desk}:TOOLS", "langchain", domain="shop", tenant="acme")
    assert catalog.ids == ("acme/shop.get_weather",)
    assert catalog.cards[0].tenants == ("acme",)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("crib_desk", "expected MODULE:ATTRIBUTE"),
        (":TOOLS", "expected MODULE:ATTRIBUTE"),
        ("crib_gone:TOOLS", "'crib_gone' cannot be imported: No module named"),
        ("crib_desk:GONE", "'crib_desk' has no 'GONE'"),
        ("crib_desk:number", "expected a list of LangChain tools, found int"),
        ("crib_desk:broken", "'broken' failed when it was called: no key"),
        ("crib_desk:mixed", "expected a LangChain tool, found function"),
    ],
)
def test_a_reference_that_leads_to_no_tools_gets_one_clear_line(desk: str, reference: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        import_catalog(reference, "langchain")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_tool_is_left_out_and_counted_where_asked(desk: str) -> None:
    catalog, report = import_catalog(f"{desk}:mixed", "langchain", skip_bad=True)
    assert (len(catalog), report.read, report.skipped) == (1, 2, {"not usable": 1})


def test_arguments_that_json_cannot_hold_and_names_given_twice_are_refused() -> None:
    class Held(BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        handle: Iterator[Any]

    with pytest.raises(InputError, match="'get_weather' has no JSON schema"):
        cards_of_langchain([weather(args_schema=Held)])
    with pytest.raises(InputError, match="was defined already"):
        cards_of_langchain([weather(), weather()])


def test_langchain_is_imported_for_its_own_tools_alone() -> None:
    script = "import sys, data.importers; assert not any(name.startswith('langchain') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_langchain_the_import_says_what_to_install(desk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.tools", None)
    with pytest.raises(InputError, match=r"pip install 'toolcrib\[langchain\]'"):
        import_catalog(f"{desk}:TOOLS", "langchain")
