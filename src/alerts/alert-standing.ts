/** How alerts and their channels stand, for metrics. */
import { count, eq, sql } from 'drizzle-orm'
import type { Reader } from '../store/open.ts'
import { query } from '../store/query.ts'
import { alertChannels, alertDeliveries, alertFirings } from '../store/schema/ledger/alerts.ts'
import type { AlertReading } from '../telemetry/metrics.ts'
import { isAnnouncedAndOpen } from './stored-alert.ts'

export async function alertStanding(ledger: Reader): Promise<AlertReading> {
  const open = await query(ledger)
    .select({ severity: alertFirings.severity, count: count() })
    .from(alertFirings)
    .where(isAnnouncedAndOpen)
    .groupBy(alertFirings.severity)
  const waiting = sql<number>`(select count(*) from ${alertDeliveries}
    where ${alertDeliveries.channelId} = ${alertChannels.id} and ${alertDeliveries.state} = 'pending')`
  const channels = await query(ledger)
    .select({ name: alertChannels.name, kind: alertChannels.kind, failures: alertChannels.failures, waiting })
    .from(alertChannels)
    .where(eq(alertChannels.enabled, 1))
    .orderBy(alertChannels.id)
  return { open, channels: channels.map(({ failures, ...each }) => ({ ...each, failing: failures > 0 })) }
}
