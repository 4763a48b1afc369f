"""What `memorepair demo` prints: the job in order, on one screen.

Contract: `rendered` is made for a terminal of 100 columns; all text of the trace is escaped and never read as
markup. The last line tells whether everything came out as promised.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from memorepair.demo.run import DemoReport, Story
from memorepair.keys import escaped

WIDTH = 100


def rendered(report: DemoReport) -> RenderableType:
    """Return everything but the last line."""
    seconds, memory = report.seconds, report.memory
    parts: list[RenderableType] = [
        Text("memorepair demo: an agent's memory is poisoned, withdrawn and repaired", "bold"),
        _text(
            f"The memory of {report.tasks} real agent tasks (AgentDojo): {memory['record']} records, "
            f"{memory['cache']} cached tool results, {memory['summary']} summaries, "
            f"{memory['skill']} learned procedures. {report.roots} sources hold an attacker's text; "
            f"{report.truly_stale} artifacts would read otherwise in a clean run."
        ),
        _text(""),
        _text(
            f"1 withdraw  one event corrects {report.roots} sources; {report.cascade} artifacts are withdrawn in "
            f"{1000 * seconds['barrier']:.1f} ms, before any repair"
        ),
        _text(
            f"2 plan      {report.selected} of {report.candidates} candidates are worth it at cost weight "
            f"{report.cost_weight}; certificate {report.certificate} ({1000 * seconds['plan']:.0f} ms)"
        ),
        _text(
            f"3 repair    {report.published} rebuilt, validated and published, {report.failed} failed, "
            f"{report.not_worth_it} stay withdrawn ({1000 * seconds['repair']:.0f} ms)"
        ),
        _text(""),
        _leaks(report),
        _text(""),
        _costs(report),
        _text(""),
        *_story(report.story),
        _text(""),
        _text(
            f"{report.equal_to_clean} of {report.visible} readable artifacts equal a clean run. "
            f"{report.precision:.0%} of what was withdrawn really differs there; the rest only "
            "rested on poisoned sources."
        ),
        _note("Costs", f"{report.costs}. Values: {report.values}."),
        *(_note("Limit", limit) for limit in report.limits),
    ]
    return Group(*parts)


def verdict(report: DemoReport) -> Text:
    """The last line."""
    if report.problems:
        return Text("FAILED: " + "; ".join(report.problems), "bold red")
    return Text(
        f"done in {report.seconds['total']:.1f} s: {report.leak_before} stale artifacts were readable, "
        f"{report.leak_after} are now",
        "bold green",
    )


def _text(text: str) -> Text:
    return Text(escaped(text))


def _note(name: str, text: str) -> Text:
    return Text.assemble((f"{name}: ", "bold dim"), (escaped(text), "dim"))


def _leaks(report: DemoReport) -> Table:
    table = _table("Stale artifacts that a reader still gets", "count", "of the stale")
    for name, count in (
        ("no action", report.leak_before),
        ("only the sources replaced", report.leak_source_only),
        ("memorepair, once the event returns", report.leak_withdrawn),
        ("memorepair, after the repair", report.leak_after),
    ):
        style = "green" if count == 0 else "red"
        share = count / report.truly_stale
        table.add_row(Text(name), Text(str(count), style), Text(f"{share:.0%}", style))
    return table


def _costs(report: DemoReport) -> Table:
    table = _table("What repair costs", "rebuilt", "published", report.unit, "of all")
    table.add_row(
        Text(f"worth it at cost weight {report.cost_weight}"),
        Text(str(report.selected)),
        Text(str(report.published)),
        Text(f"{report.cost:,.0f}"),
        Text(f"{report.cost_ratio:.2f}"),
    )
    table.add_row(
        Text("everything (cost weight 0)"),
        Text(str(report.candidates)),
        Text(str(report.repair_all_published)),
        Text(f"{report.repair_all_cost:,.0f}"),
        Text("1.00"),
    )
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(Text(title), width=44)
    for column in columns:
        table.add_column(Text(column), justify="right", min_width=10)
    return table


def _story(story: Story) -> list[RenderableType]:
    answer: list[RenderableType] = [
        Text.assemble(("One artifact, followed: ", "bold"), escaped(story.key)),
        _text(f'  asked      "{story.question}"'),
    ]
    excerpt = _excerpt(story.before, story.before.index(story.marker))
    before = _text(f"  before     {excerpt}")
    before.highlight_regex(r"INJECTED-[^;]*", "bold white on red")
    answer.append(before)
    answer.append(_text(f"  withdrawn  because of {' <- '.join(reversed(story.path[:-1]))}"))
    answer.append(_text(f"  after      {_excerpt(story.after, story.before.index(story.marker))}"))
    return answer


def _excerpt(text: str, near: int) -> str:
    start = max(0, text.rfind(": ", 0, max(0, near - 75)) + 2)
    return "..." * (start > 0) + text[start : start + 190].replace("\n", " ") + "..." * (start + 190 < len(text))
