"""The explorer as a person meets it: keyboard, link, copied lines, no network, light and dark, phone."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import generic_adam as ga
from generic_adam.cli.app import run


@pytest.fixture
def page(site: Path, browser: Chrome) -> Chrome:
    browser.get("about:blank")
    browser.get((site / "explorer" / "index.html").as_uri())
    return browser


def text(page: Chrome, name: str) -> str:
    return page.find_element(By.ID, f"explorer-{name}").get_attribute("textContent") or ""


def wait_for_run(page: Chrome) -> None:
    WebDriverWait(page, 20).until(
        lambda p: p.execute_script(
            "return document.getElementById('explorer-simulation').dataset.ready"
            " === Settings.toHash(Settings.fromHash(location.hash))"
        )
    )


def statuses(page: Chrome) -> list[str | None]:
    return [page.find_element(By.ID, f"explorer-condition-{n}").get_attribute("data-status") for n in range(1, 5)]


def type_into(page: Chrome, name: str, value: str) -> None:
    box = page.find_element(By.ID, f"explorer-{name}")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(value, Keys.TAB)


def test_a_link_restores_the_state_and_the_page_shows_its_verdict(page: Chrome) -> None:
    type_into(page, "r", "1")
    type_into(page, "s", "0.4")
    type_into(page, "K", "1")
    link = page.current_url
    assert statuses(page) == ["holds", "fails", "fails", "holds"]
    page.get("about:blank")
    page.get(link)
    assert page.find_element(By.ID, "explorer-s").get_attribute("value") == "0.4"
    assert statuses(page) == ["holds", "fails", "fails", "holds"]
    assert text(page, "verdict").startswith("Not certified")
    assert text(page, "c0") == "∞"


def test_a_broken_link_and_a_wrong_entry_lose_nothing(page: Chrome) -> None:
    page.get(page.current_url.split("#")[0] + "#r=abc&s=99&K=&unknown=1")
    assert page.find_element(By.ID, "explorer-r").get_attribute("value") == "1"
    assert page.find_element(By.ID, "explorer-s").get_attribute("value") == "1.2"
    type_into(page, "beta", "half")
    box = page.find_element(By.ID, "explorer-beta")
    assert box.get_attribute("aria-invalid") == "true"
    assert "beta=0.9" in text(page, "python")
    shown = "return Number(getComputedStyle(document.querySelector('.explorer .answer')).opacity)"
    assert page.execute_script(shown) < 0.5  # it is not of what is written
    type_into(page, "beta", "0.5")
    assert page.execute_script(shown) == 1


def test_every_slider_moves_by_keyboard(page: Chrome) -> None:
    for name in ("r", "s", "c", "K", "eta", "beta", "theta"):
        box = page.find_element(By.ID, f"explorer-{name}")
        before = float(box.get_attribute("value") or "nan")
        slider = page.find_element(By.ID, f"explorer-{name}-slider")
        slider.send_keys(Keys.ARROW_LEFT)
        down = float(box.get_attribute("value") or "nan")
        slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert down < before < float(box.get_attribute("value") or "nan"), name
        assert slider.get_attribute("aria-valuetext") == box.get_attribute("value")


def test_a_screen_reader_finds_a_name_for_everything(page: Chrome) -> None:
    unnamed = page.execute_script(
        """
        const root = document.querySelector(".explorer");
        const named = (node) => node.getAttribute("aria-label") || node.textContent.trim()
          || (node.labels && node.labels.length) || node.closest("pre");
        return [...root.querySelectorAll("button, input, svg[role=img], section")]
          .filter((node) => !named(node)).map((node) => node.outerHTML);
        """
    )
    assert unnamed == []
    assert page.execute_script("return document.documentElement.lang") == "en"
    assert page.find_element(By.ID, "explorer-verdict").get_attribute("aria-live") == "polite"


def test_the_copied_lines_give_the_verdict_on_the_page(page: Chrome, capsys: pytest.CaptureFixture[str]) -> None:
    for preset in page.find_elements(By.CSS_SELECTOR, "#explorer-presets button"):
        preset.click()
        shown = page.find_element(By.ID, "explorer-verdict").get_attribute("data-verdict")
        output = io.StringIO()
        with redirect_stdout(output):
            exec(text(page, "python"), {})  # the page's own line, built from numbers
        assert str(shown) in output.getvalue().lower()
        parts = text(page, "command").split('"')
        words = [*parts[0].split(), parts[1], *parts[2].split(), parts[3], *parts[4].split(), "--json"]
        code = run(words[1:])
        answer = {"certified": "guaranteed", "not certified": "no guarantee"}[str(shown)]
        assert json.loads(capsys.readouterr().out)["long_run"]["answer"] == answer
        assert code == 0


def test_copying_puts_the_lines_on_the_clipboard(page: Chrome) -> None:
    origin = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.execute_cdp_cmd("Browser.grantPermissions", origin)
    for name in ("python", "command", "shipped"):
        page.find_element(By.ID, f"explorer-copy-{name}").click()
        WebDriverWait(page, 5).until(lambda p: text(p, "copied") != "")
        assert text(page, "copied") == "Copied."
        copied = page.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        assert copied == text(page, name)


def test_dragging_the_dot_moves_r_and_s(page: Chrome) -> None:
    page.execute_script(
        """
        const plane = document.getElementById("explorer-plane");
        const at = new DOMPoint(58, 14).matrixTransform(plane.getScreenCTM());
        const press = { clientX: at.x, clientY: at.y, pointerId: 1, bubbles: true };
        plane.setPointerCapture = () => {};
        plane.dispatchEvent(new PointerEvent("pointerdown", press));
        """
    )
    assert page.find_element(By.ID, "explorer-r").get_attribute("value") == "0"
    assert page.find_element(By.ID, "explorer-s").get_attribute("value") == "1.2"
    assert statuses(page)[3] == "fails"


def test_a_million_steps_reach_the_right_end_with_a_certificate_and_the_wrong_one_without(
    page: Chrome,
) -> None:
    page.find_element(By.CSS_SELECTOR, "#explorer-presets button").click()
    wait_for_run(page)
    summary = text(page, "summary")
    yours, constant = (float(part.split(" with")[0].rstrip(";")) for part in summary.split("x = ")[1:3])
    assert yours < -0.5
    assert constant > 0.5
    assert float(page.find_element(By.ID, "explorer-ratio").get_attribute("data-value") or "nan") < 0.02


def test_the_comparison_says_why_constant_theta_is_not_certified(page: Chrome) -> None:
    type_into(page, "theta", "0.999")
    told = text(page, "comparison")
    certificate = ga.certify(ga.Method(alpha="0.5/sqrt(t)", beta=0.9, theta=0.999), theorem="zou2019")
    failing = certificate["zou2019"].first_failing
    assert failing is not None
    assert told.startswith(f"Not certified, condition {failing.number}:")
    limit = float(told.split(" = ")[1].split(",")[0])
    assert limit == pytest.approx(2 * 0.001**0.5, rel=1e-5)  # sqrt(1 - theta) / (1 - s)


def test_a_choice_that_cannot_run_says_so(page: Chrome) -> None:
    page.get(page.current_url.split("#")[0] + "#r=0.05&s=0.5&c=2&K=10000")
    wait_for_run(page)
    assert "your choice stopped, because a θt below 0 made vt negative" in text(page, "summary")
    assert statuses(page)[1] == "fails"


def test_nothing_is_fetched_from_a_network_and_nothing_is_logged(page: Chrome) -> None:
    page.get_log("browser")
    page.get_log("performance")
    page.refresh()
    wait_for_run(page)
    requests = [
        message["params"]["request"]["url"]
        for message in (json.loads(entry["message"])["message"] for entry in page.get_log("performance"))
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert requests
    assert {url.split(":")[0] for url in requests} <= {"file", "data", "blob"}
    assert page.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 820, 1280])
def test_it_fits_the_screen_and_contrasts(page: Chrome, width: int, scheme: str) -> None:
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    page.refresh()
    wait_for_run(page)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        contrasts = page.execute_script(
            """
            const channels = (colour) => {
              const canvas = document.createElement("canvas").getContext("2d");
              canvas.fillStyle = colour;
              canvas.fillRect(0, 0, 1, 1);
              return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
            };
            const luminance = (colour) => {
              const [r, g, b] = channels(colour).map((x) => x / 255)
                .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const card = getComputedStyle(document.querySelector(".explorer section")).backgroundColor;
            const texts = ["#explorer-verdict strong", ".conditions .status", ".conditions li"];
            return [...texts, ".key.adam", ".key.yours"]
              .map((place) => getComputedStyle(document.querySelector(".explorer " + place)).color)
              .map(luminance)
              .map((light) => [light, luminance(card)].sort((a, b) => b - a))
              .map(([lighter, darker]) => (lighter + 0.05) / (darker + 0.05));
            """
        )
        assert min(contrasts[:3]) >= 4.5  # text: WCAG AA
        assert min(contrasts[3:]) >= 3  # lines
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
