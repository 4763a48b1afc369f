"""Commands of the repair: plan, frontier, repair."""

from __future__ import annotations

from typing import Any

import click

from memorepair.amounts import parse_cost, parse_cost_weight
from memorepair.cli.arguments import amount, load_rules, rules_option
from memorepair.cli.command import Session, command, plain
from memorepair.engine import repair as run_repair
from memorepair.planner import frontier as solve_frontier
from memorepair.planner import plan as make_plan

_event = click.option("--event", metavar="ID", help="Repair what this event withdrew; otherwise everything held.")
_keys = click.option("--key", "keys", multiple=True, help="Only this key and its required parents (repeatable).")
_choice = (
    rules_option,
    _event,
    click.option(
        "--cost-weight", callback=amount(parse_cost_weight),
        help="How much cost counts against value, such as 3/10; the schedule's own otherwise.",
    ),
    click.option(
        "--budget", callback=amount(parse_cost),
        help='Instead: an upper limit such as "5000 tokens", in the unit of the recorded costs, and only when costs '
        "are recorded. 'memorepair plan --help' tells what is exact then.",
    ),
    _keys,
)  # fmt: skip
UNDONE = ("failed", "blocked", "stalled")


def _check_choice(choice: dict[str, Any]) -> None:
    if choice["cost_weight"] is not None and choice["budget"] is not None:
        raise click.UsageError("Give --cost-weight or --budget, not both.")


@command("plan", *_choice)
def plan(session: Session, rules_name: str, event: str | None, keys: tuple[str, ...], **choice: Any) -> None:
    """Choose what is worth repairing; changes nothing.

    The choice is exact at a cost weight, and its certificate verified. Within a budget it is a point of the
    frontier that fits, certified, and a greedy fill, which is not: it may miss the best selection within it, and says
    by how much at most.
    """
    _check_choice(choice)
    rules = load_rules(rules_name)
    with session.open() as store:
        chosen = make_plan(store, event, rules, keys=keys or None, **choice)
    value = {
        "digest": chosen.digest,
        "candidates": len(chosen.items),
        "selected": list(chosen.selected),
        "value": chosen.value,
        "planned_cost": str(chosen.planned_cost),
        "repair_all_cost": str(chosen.repair_all_cost),
    }
    session.show({**value, **plain(chosen)} | {"selected": value["selected"]}, f"{chosen}\nnothing was changed")


@command(
    "frontier",
    rules_option,
    _event,
    _keys,
    click.option("--points", type=click.IntRange(min=2), default=20, show_default=True,
                 help="Show so many, evenly spread by number of points; --json has all."),
)  # fmt: skip
def frontier(session: Session, rules_name: str, event: str | None, keys: tuple[str, ...], points: int) -> None:
    """Show what every cost weight would choose; changes nothing.

    A row's cost weight, given to plan or repair, selects what the row counts; its cost, where costs are recorded, is
    the --budget that pays for it. The row marked * is what plan chooses when told nothing.
    """
    rules = load_rules(rules_name)
    with session.open() as store:
        solved = solve_frontier(store, event, rules, keys=keys or None)
    session.show(solved, f"{solved.table(points)}\nnothing was changed")


@command(
    "repair",
    *_choice,
    click.option("--publish", type=click.Choice(["ready", "at_end"]), default="ready", show_default=True,
                 help="Publish validated batches as they are ready, or all in one transaction."),
)  # fmt: skip
def repair(
    session: Session, rules_name: str, event: str | None, keys: tuple[str, ...], publish: str, **choice: Any
) -> int:
    """Rebuild what is worth it, validate it, and publish what passes.

    Exit code 1 when a selected artifact failed, was blocked or stalled; it stays withdrawn.
    """
    _check_choice(choice)
    rules = load_rules(rules_name)
    with session.open() as store, session.progress("planning") as tell:
        chosen = make_plan(store, event, rules, keys=keys or None, **choice)
        report = run_repair(
            store, chosen, rules, publish=publish, on_progress=lambda key, state: tell(f"{state} {key}")
        )
    undone = [f"{report.counts[fate]} {fate}" for fate in UNDONE if report.counts.get(fate)]
    if undone:
        end = f"incomplete: {report.published} published, {', '.join(undone)}; these stay withdrawn"
    else:
        end = f"done: {report.published} published, {report.candidates - report.published} stay withdrawn"
    session.show(report.to_json(), f"{report}\n{end}")
    return 1 if undone else 0
