"""The page of an evaluation in a real browser: it loads without errors, and what it offers works."""

import os
import shutil

import pytest

from eval.config import Config
from eval.run import evaluate

WORDS = ["--rlmodel", "none"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a small evaluation."""
    folder = tmp_path_factory.mktemp("page")
    config = Config(
        rlmodel=("none",), seq_len=48, windows=4, sched_algo=("fcfs", "sjf", "saf"), discipline=("strict", "easy"),
        out=str(folder), warm_rule="fcfs@easy",
    )  # fmt: skip
    evaluate("philly", config, WORDS)
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser(page):
    """Chromium without a window, at the page."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver (.ci/run does)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1300,1000",
    ):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = {**os.environ, "no_proxy": "localhost,127.0.0.1"}
    service = webdriver.ChromeService(executable_path=driver, env=environment)
    with webdriver.Chrome(options=options, service=service) as chrome:
        chrome.get(page.as_uri())
        yield chrome


def find(browser, css):
    return browser.find_element("css selector", css)


def choose(browser, where, value):
    script = "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.onchange();"
    browser.execute_script(script, where, value)


def point_at(browser, canvas, x, y):
    """Move the pointer over a canvas, to a share of its width and height."""
    script = """
    const c = arguments[0], r = c.getBoundingClientRect();
    c.dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + arguments[1] * r.width,
      clientY: r.top + arguments[2] * r.height, bubbles: true}));"""
    browser.execute_script(script, canvas, x, y)


def test_it_loads_without_errors_and_without_a_network(browser, page):
    assert browser.get_log("browser") == []
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")  # a name of the SVG standard, not a fetch
    assert "https://" not in text
    assert len(browser.find_elements("css selector", "#main tbody tr")) == 6
    assert find(browser, "#title").text == "philly: bounded slowdown of 6 contenders"
    for name in ("test", "cdf", "over_time", "gantt"):
        assert browser.execute_script(f"return document.getElementById('img-{name}').naturalWidth") > 500


def test_a_job_tells_about_itself(browser):
    canvas = find(browser, "canvas")
    texts = set()
    for k in range(40):
        point_at(browser, canvas, 0.3, (k + 0.5) / 40)
        if find(browser, "#tip").is_displayed():
            texts.add(find(browser, "#tip").text)
    assert texts
    assert all(text.startswith("job ") and "waited" in text and "bounded slowdown" in text for text in texts)


def test_switching_contenders_and_windows(browser):
    choose(browser, "left", "saf easy")
    choose(browser, "right", "fcfs strict")
    names = [canvas.get_attribute("data-contender") for canvas in browser.find_elements("css selector", "canvas")]
    assert names == ["saf easy", "fcfs strict"]
    before = find(browser, ".lane h3").text
    choose(browser, "window", "0" if find(browser, "#window").get_attribute("value") != "0" else "1")
    assert find(browser, ".lane h3").text != before
    choose(browser, "right", "")
    assert len(browser.find_elements("css selector", "canvas")) == 1
    assert browser.get_log("browser") == []


def test_zooming_changes_what_is_shown_and_a_double_click_shows_all(browser):
    canvas = find(browser, "canvas")
    whole = find(browser, ".lane h3").text
    browser.execute_script(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -400, cancelable: true}))", canvas
    )
    assert find(browser, ".lane h3").text != whole
    browser.execute_script("arguments[0].ondblclick()", canvas)
    assert find(browser, ".lane h3").text == whole


def test_tables_sort_and_choose(browser):
    first = [row.text for row in browser.find_elements("css selector", "#main tbody tr")]
    find(browser, "#main th:nth-child(2)").click()
    up = [row.text for row in browser.find_elements("css selector", "#main tbody tr")]
    find(browser, "#main th:nth-child(2)").click()
    down = [row.text for row in browser.find_elements("css selector", "#main tbody tr")]
    assert sorted(up) == sorted(first)
    assert up[0] == down[-1]
    assert up[-1] == down[0]
    choose(browser, "by", "length")
    assert "min" in find(browser, "#groups").text
