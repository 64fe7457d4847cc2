"""What a profile was used for, in numbers."""

from __future__ import annotations

import time

from hermes_ws.contract.methods.insights import INSIGHTS_GET, Day, Insights, InsightsParams
from hermes_ws.journal import insights
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(INSIGHTS_GET)
async def get(call: ProfileCall, params: InsightsParams) -> Insights:
    """Sums over the executions that were begun in these days."""
    start = (time.time() // insights.DAY_S - params.days + 1) * insights.DAY_S
    report = await call.runtime.journal.read(lambda connection: insights.since(connection, start))
    total = report.total
    return Insights(
        profile=call.runtime.scope.profile.text,
        days=params.days,
        sessions=report.sessions,
        messages=report.messages,
        executions=total.executions,
        outcomes=dict(total.outcomes),
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cached_tokens=total.cached_tokens,
        cost_usd=total.cost_usd,
        by_model=dict(total.models),
        by_day=[
            Day(
                day=day,
                executions=each.executions,
                input_tokens=each.input_tokens,
                output_tokens=each.output_tokens,
                cost_usd=each.cost_usd,
            )
            for day, each in report.days
        ],
    )
