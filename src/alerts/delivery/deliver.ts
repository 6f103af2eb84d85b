/**
 * Delivers notices. Each channel gets its own in order, from one control plane at a time, and rests after a failure:
 * 10 s, then twice as long each time up to 15 minutes. A notice that did not arrive within a day is given up.
 *
 * At least once: a process that ends between sending and noting it leaves the notice waiting, and it is sent again with
 * the same id when the claim of the channel has ended.
 */
import { and, eq, sql } from 'drizzle-orm'
import { resolveHost } from '../../policies/resolve-host.ts'
import { query } from '../../store/query.ts'
import { alertDeliveries, alertFirings, alerts } from '../../store/schema/ledger/alerts.ts'
import type { AlertDependencies } from '../dependencies.ts'
import { alertOf } from '../stored-alert.ts'
import { firingOf, type Notice } from './notice.ts'
import { SendFailure, type SendTools, send } from './send.ts'
import {
  claimChannel,
  delivered,
  dueChannels,
  findChannel,
  givenUp,
  openChannel,
  releaseChannel,
  rested,
} from './stored-channel.ts'

const firstRestMs = 10_000
const longestRestMs = 15 * 60_000
const triedForMs = 86_400_000
/** Of one channel in one claim. */
const noticesAtOnce = 50

export const toolsOf = ({ settings, clock }: Pick<AlertDependencies, 'settings' | 'clock'>): SendTools => ({
  fetch,
  resolve: resolveHost,
  insideAllowed: settings.webhook_addresses === 'any',
  now: () => clock.now(),
})

/** Sends what waits, to all channels that may be tried, beside each other. `holder` names this control plane. */
export async function deliverNotices(
  dependencies: AlertDependencies,
  holder: string,
  tools: SendTools = toolsOf(dependencies),
): Promise<void> {
  const due = await dueChannels(dependencies.ledger)
  await Promise.all(due.map((id) => deliverTo(dependencies, { id, holder, tools })))
}

interface Delivering {
  id: string
  holder: string
  tools: SendTools
}

async function deliverTo(dependencies: AlertDependencies, { id, holder, tools }: Delivering): Promise<void> {
  const { ledger, log, clock } = dependencies
  // Deliveries are read under the claim, so that none is read that another control plane has just sent.
  for (let sent = 0; sent < noticesAtOnce && (await claimChannel(ledger, id, holder)); sent += 1) {
    const row = await findChannel(ledger, id)
    const waiting = await nextNotice(dependencies, id)
    if (row === null || waiting === null) break
    const { notice, createdAt } = waiting
    try {
      await send(await openChannel(dependencies, row), notice, tools)
      await ledger.write(delivered(id, notice.id))
    } catch (error) {
      const { message, isFinal } = error instanceof SendFailure ? error : { message: String(error), isFinal: false }
      log.warn({ channel: id, notice: notice.id, error: message }, 'A notice of an alert was not delivered')
      if (isFinal || clock.now() - createdAt > triedForMs) {
        await ledger.write(givenUp(id, notice.id, message))
        continue
      }
      const restMs = Math.min(longestRestMs, firstRestMs * 2 ** Math.min(row.failures, 10))
      await ledger.write(rested(id, notice.id, { error: message, restMs }))
      break
    }
  }
  await ledger.write([releaseChannel(id, holder)])
}

/** The oldest notice that waits for a channel, in the order they were kept: ids follow the clocks of several hosts. */
async function nextNotice(
  { ledger, consoleUrl }: AlertDependencies,
  channelId: string,
): Promise<{ notice: Notice; createdAt: number } | null> {
  const row = await query(ledger)
    .select()
    .from(alertDeliveries)
    .innerJoin(alertFirings, eq(alertFirings.id, alertDeliveries.firingId))
    .leftJoin(alerts, eq(alerts.id, alertFirings.alertId))
    .where(and(eq(alertDeliveries.channelId, channelId), eq(alertDeliveries.state, 'pending')))
    .orderBy(sql`alert_deliveries.rowid`)
    .get()
  if (row === undefined) return null
  const { alert_deliveries: delivery, alert_firings: firing, alerts: alert } = row
  const known = alert === null ? null : alertOf(alert)
  return {
    createdAt: delivery.createdAt,
    notice: {
      ...{ id: delivery.id, kind: delivery.kind, firing: firingOf(firing) },
      alert: {
        id: firing.alertId,
        name: known?.name ?? 'A deleted alert',
        condition: known?.condition ?? '',
      },
      link: linkTo(consoleUrl()),
    },
  }
}

/** Where notices lead. */
export const linkTo = (consoleUrl: string): string => `${consoleUrl}/alerts`
