"""The library in one page: put, derive, read, correct, plan, repair. No model and no network needed.

A policy changes from 30 to 14 days. The summary made from the old text is withdrawn before `correct` returns, then
rebuilt by a registered operator and published once a validator has seen it. Run: python examples/quickstart.py
"""

import memorepair as mr

rules = mr.Rules()


def first_sentence(text: str) -> str:
    """What a model would do here."""
    return text.split(". ")[0].rstrip(".") + "."


@rules.operator("sum", version="3", mode="regen", timeout_seconds=60)
def summarise(job: mr.Job) -> mr.Draft:
    return mr.Draft(first_sentence(job.inputs["doc/policy"]), cost="250 tokens")


@rules.validator("window", kinds=["summary"])
def window(job: mr.Job, draft: mr.Draft) -> mr.Verdict:
    return mr.passed() if "14" in draft.content else mr.failed("the refund window is missing")


def main() -> None:
    with mr.open(":memory:", scope="acme") as store:
        policy = store.put("doc/policy", "Refunds within 30 days. Ask support.", title="Refund policy")
        tool = store.put("tool/lookup", {"name": "lookup", "parameters": {"order": "int"}}, form="interface")
        hit = store.derive(
            "lookup/42",
            {"order": 42, "days": 9},
            kind="cache",
            parents=[tool],
            operator="lookup@1",
            cost="12 tokens",
        )
        store.derive(
            "summary/refunds",
            first_sentence(policy.content),
            kind="summary",
            optional=[policy, hit],
            operator="sum@3",
            cost="250 tokens",
        )

        summary = store.get("summary/refunds")
        print(f"before   {summary.content}  visible: {store.visible([summary.version, 17]).tolist()}")
        print(store.impact({"doc/policy": "Refunds within 14 days. Ask support."}))

        event = store.correct("doc/policy", "Refunds within 14 days. Ask support.", event_id="crm-881")
        try:
            store.get("summary/refunds")
        except mr.WithdrawnError as error:
            print(f"between  {error}")

        plan = mr.plan(store, event, rules)
        report = mr.repair(store, plan, rules)
        print(f"repair   summary/refunds {report['summary/refunds'].fate}, certificate {report.certificate}")
        print(f"after    {store.get('summary/refunds').content}")
        print(store.explain("summary/refunds"))


if __name__ == "__main__":
    main()
