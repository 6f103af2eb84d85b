/** An installation for tests of alerts: sums of made-up traffic, channels, and what another room would find. */
import { type Event, noAttribution, type Verdict } from '../../events/event.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { temporaryInstallation } from '../../members/testing/installation.ts'
import { alertConfig } from '../alert-resource.ts'
import type { ChannelConfig, ChannelKind, ChannelSecrets } from '../channel-resource.ts'
import { channelConfig } from '../channel-resource.ts'
import type { ConditionName } from '../conditions/condition-table.ts'
import { addChannel, keepSecrets } from '../delivery/stored-channel.ts'
import type { AlertDependencies, AlertSources } from '../dependencies.ts'
import { addAlert, type DeliveryRow, type FiringRow } from '../stored-alert.ts'

/** Requests that ended alike. */
export interface Traffic {
  count: number
  verdict?: Verdict
  reason?: string
  provider?: string
  team?: string | null
  /** US dollars of each. */
  cost?: number
  /** When, before now. */
  agoMs?: number
}

export async function alertInstallation() {
  const installation = await temporaryInstallation()
  const { store, clock, options, deps } = installation
  const { ledger } = store
  const sources: AlertSources = {}
  const dependencies: AlertDependencies = {
    ...options,
    recorder: deps.recorder,
    log: silentLog,
    settings: { webhook_addresses: 'any', event_retention_days: 30 },
    consoleUrl: () => 'https://gatehouse.example.com/console',
    sources,
  }
  // Those of a new installation would fire beside what a test makes.
  await ledger.write([{ sql: 'delete from alerts', args: [] }])

  async function traffic({ count, verdict = 'allow', reason, provider = 'openai', team, cost, agoMs = 0 }: Traffic) {
    const at = clock.now() - agoMs
    const event: Event = {
      ...{ event_id: newId(), event_type: 'gateway.request.outcome', request_id: null, config_version: 1 },
      ...{
        timestamp: new Date(at).toISOString(),
        verdict,
        reason_code: reason ?? (verdict === 'allow' ? 'ok' : verdict),
      },
      event_attribution: { ...noAttribution, team_id: team === undefined ? installation.teamId : team },
      details: { model: 'gpt', provider },
      ...(cost === undefined
        ? {}
        : {
            event_cost_attribution: {
              ...{ currency: 'USD' as const, cost, estimated: false, input_tokens: 1, output_tokens: 1 },
              ...{ cached_input_tokens: null, reasoning_tokens: null, provider, model: 'gpt' },
              ...{ price_source: null, spend_owner: null },
            },
          }),
    }
    await ledger.write(pendingRollups(Array<Event>(count).fill(event), clock.now()))
  }

  async function alert(condition: ConditionName, fields: Record<string, unknown> = {}): Promise<string> {
    const id = newId()
    const config = JSON.stringify(alertConfig.parse(fields))
    await ledger.write([addAlert({ id, name: `${condition} ${id}`, condition, config, createdAt: clock.now() })])
    return id
  }

  async function channel(
    kind: ChannelKind,
    secrets: ChannelSecrets,
    config: Partial<ChannelConfig> = {},
  ): Promise<string> {
    const id = newId()
    const row = { id, name: `${kind} ${id}`, kind, config: JSON.stringify(channelConfig.parse(config)), createdAt: 0 }
    await ledger.write([addChannel(row), ...keepSecrets(options.masterKey, id, secrets, 0)])
    return id
  }

  return {
    ...installation,
    dependencies,
    sources,
    traffic,
    alert,
    channel,
    firings: () =>
      ledger.read<FiringRow & { resolved_at: number | null }>('select * from alert_firings order by rowid'),
    deliveries: () => ledger.read<DeliveryRow>('select * from alert_deliveries order by rowid'),
  }
}

export type AlertInstallation = Awaited<ReturnType<typeof alertInstallation>>
