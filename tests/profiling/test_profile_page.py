from html.parser import HTMLParser

import planted
import pytest
from planted import EVIL, evidence, place

from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.page_parts import bar, table
from rlbench.profiling.records import PhaseTime, Sync
from rlbench.profiling.report import Report

NAMES = [EVIL, "x" * 300, r"a$\frac$.py", "模型.py", "a\udce9.py", "two\nlines"]


def report(made=None, advice=None, error=""):
    made = evidence() if made is None else made
    filled = Report()
    filled.fill(made, advise(made) if advice is None else advice, criteria(made), None, error)
    return filled


class Tags(HTMLParser):
    """Opening and closing tags in order; checks that they nest."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.text = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def shown(self):
        return " ".join(" ".join(self.text).split())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whole", [True, False])
def test_the_page_is_whole_safe_and_alone(name, whole):
    filled = report(planted.rich(name), error=f"ValueError: {name}")
    html = filled.html() if whole else filled._repr_html_()
    tags = Tags(html)
    assert tags.open == [] and "script" not in tags.seen and "link" not in tags.seen and "http" not in html
    assert html.encode("utf-8")
    if name == EVIL:
        assert EVIL in "".join(tags.text)


@pytest.mark.parametrize(("made", "pictures"), [(planted.rich, 1), (planted.on_cuda, 1), (planted.empty, 0)])
def test_a_picture_where_there_is_work(made, pictures):
    html = report(made()).html()
    assert Tags(html).seen.count("img") == pictures == html.count('src="data:image/png;base64,')


def test_the_answer_comes_first():
    text = Tags(report(planted.rich()).html()).shown
    assert text.index("To change first") < text.index("What to change first") < text.index("Where the time goes")
    assert "measured under loop=python" in text


def test_three_cards_in_the_open_the_others_folded():
    fault = Advice("x", "fault", "It `waits`.", "Much.", "y", 2.0, 4.0, (place("x = 1", 7),))
    html = report(advice=[fault] * 5).html()
    before, after = html.split("<details>")
    assert before.count('class="card fault"') == 3 and after.count('class="card fault"') == 2 and "2 more" in after
    assert (
        "train.py:7  x = 1" in before and "predicted 2.00x, at most 4.00x" in before and "<code>waits</code>" in before
    )
    against = report(advice=[Advice("x", "against", "No.", "", "", 0.5, None)] * 5).html()
    assert "<details>" not in against and against.count("predicted 0.50x") == 5


def test_no_table_without_rows():
    for made in (planted.empty(), evidence(counted=None, trace=None, light=()), evidence(lines=())):
        html = report(made).html()
        assert "</th></tr></table>" not in html
    text = Tags(report(planted.empty()).html()).shown
    assert "Not measured: there was no counting pass." in text and "not measured: the run is on the CPU" in text
    assert "None, counted over 100 steps." in Tags(report().html()).shown


def test_a_gpu_that_does_nothing_is_measured():
    idle = planted.on_cuda()
    idle = type(idle)(**{**vars(idle), "device_use": type(idle.device_use)(0.0, 0.0, 0, 0, 0.0, 0)})
    html = report(idle).html()
    assert "<td>utilisation (NVML)</td><td>0.0 %</td>" in html and "<td>allocation retries</td><td>0</td>" in html


def test_what_a_gpu_shows():
    text = Tags(report(planted.on_cuda()).html()).shown
    for said in (
        "host to device 100 3,200,000 30 ms 5.0 % pageable",
        "kernels a step 80",
        "120 µs",
        "failed",
        "passed",
    ):
        assert said in text


def test_counts_without_steps_are_no_counts_a_step():
    sync = (Sync(place("x"), ".item()", "python", 7, 7.0),)
    html = report(evidence(counted=planted.counted(sync, steps=0))).html()
    assert "no single step was seen" in html and "7.00" not in html


def test_what_was_applied():
    filled = report()
    nan = float("nan")
    filled.applied = (
        Applied("fused", {"optimizer": "fused"}, 1.4, 0.9, 0.85, 0.95, 0.99, 1.01, "slower"),
        Applied("other", {}, None, nan, nan, nan, nan, nan, "could not run: x"),
    )
    text = Tags(filled._repr_html_()).shown
    assert "optimizer=fused 1.40x 0.90x [0.85, 0.95] slower" in text and "nan" not in text


def test_the_bar_adds_up_and_a_phase_keeps_its_colour():
    one = bar((PhaseTime("env", 1.0, 0.25, 1), PhaseTime("forward", 3.0, 0.75, 1)))
    assert "width:25.00%" in one and "width:75.00%" in one
    other = bar((PhaseTime("forward", 1.0, 1.0, 1),))
    assert one.rsplit("background:", 1)[1][:7] == other.rsplit("background:", 1)[1][:7]


def test_tables_are_escaped_and_marked():
    made = table(("<a>", "b"), [("<i>", "not measured"), "<u> & all"], coded=(0,), marked=1)
    assert "<i>" not in made and "<code>&lt;i&gt;</code>" in made and '<td class="not">not measured</td>' in made
    assert '<td colspan="2">&lt;u&gt; &amp; all</td>' in made and "&lt;a&gt;" in made
