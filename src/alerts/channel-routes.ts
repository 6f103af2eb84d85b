/** `/v1/alert-channels`: where notices go, and the button that tries one. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { requireVersion } from '../api/entity-tag.ts'
import { recordPage } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { resourceRoutes } from '../api/resource-routes.ts'
import { requireWholeOrganization } from '../api/token-reach.ts'
import { Failure } from '../failure.ts'
import { timestamp } from '../lib/clock.ts'
import { recordChange } from '../members/member-event.ts'
import { alertEvent, given } from './alert-event.ts'
import { type ChannelRecord, channelConfig, channelResource, channelSecrets } from './channel-resource.ts'
import { checkChannel, checkReceiver } from './check-channel.ts'
import { linkTo, toolsOf } from './delivery/deliver.ts'
import { pagerDutyUrl } from './delivery/http-forms.ts'
import { testNotice } from './delivery/notice.ts'
import { SendFailure, send } from './delivery/send.ts'
import {
  addChannel,
  type ChannelRow,
  changeChannel,
  configOf,
  deleteChannel,
  findChannel,
  keepSecrets,
  listChannels,
  openChannel,
  secretsOf,
  waitingCounts,
} from './delivery/stored-channel.ts'
import type { AlertDependencies } from './dependencies.ts'

export const channelRoutes = (dependencies: AlertDependencies) => {
  const { ledger, recorder, clock, newId, masterKey } = dependencies
  return resourceRoutes(channelResource, {
    async list(query, { principal }) {
      requireWholeOrganization(principal)
      return await recordPage(query, {
        filters: { list: 'alert-channels' },
        read: (after, count) => listChannels(ledger, after, count),
        show: (rows) => shown(dependencies, rows),
      })
    },
    async get(id, { principal }) {
      requireWholeOrganization(principal)
      return await one(dependencies, id)
    },
    async create({ name, kind, enabled, ...rest }, { principal, requestId }) {
      requireWholeOrganization(principal)
      const [config, secrets] = [channelConfig.parse(rest), channelSecrets.parse(given(rest))]
      checkChannel({ kind, config, secrets })
      const id = newId()
      const details = { alert_channel_id: id, name, kind }
      const event = await alertEvent(dependencies, { type: 'alert.channel_created', principal, requestId, details })
      const row = { id, name, kind, enabled: Number(enabled), config: JSON.stringify(config), createdAt: clock.now() }
      const kept = keepSecrets(masterKey, id, secrets, clock.now())
      await recordChange(recorder, { event, ledger: [addChannel(row), ...kept] }, taken)
      return await one(dependencies, id)
    },
    async update(id, { name, enabled, ...rest }, { principal, requestId, headers }) {
      requireWholeOrganization(principal)
      const before = await requireChannel(dependencies, id)
      requireVersion(headers, before.version)
      const sent = given(rest)
      const config = channelConfig.parse({ ...configOf(before), ...sent })
      const known = await secretsOf(dependencies, id)
      const secrets = channelSecrets.parse(withoutNull({ ...known, ...sent }))
      checkChannel({ kind: before.kind, config, secrets })
      checkReceiver({ config: configOf(before), secrets: known }, { config, secrets }, sent)
      const after = {
        name: name ?? before.name,
        enabled: enabled === undefined ? before.enabled : Number(enabled),
        config: JSON.stringify(config),
      }
      const fields = Object.keys(given({ name, enabled, ...rest }))
      const details = { alert_channel_id: id, name: after.name, kind: before.kind, fields }
      const event = await alertEvent(dependencies, { type: 'alert.channel_updated', principal, requestId, details })
      const kept = keepSecrets(masterKey, id, secrets, clock.now())
      await recordChange(recorder, { event, ledger: [...changeChannel(before, after), ...kept] }, taken)
      return await one(dependencies, id)
    },
    async remove(id, { principal, requestId, headers }) {
      requireWholeOrganization(principal)
      const before = await requireChannel(dependencies, id)
      requireVersion(headers, before.version)
      const last = await one(dependencies, id)
      const details = { alert_channel_id: id, name: before.name, kind: before.kind }
      const event = await alertEvent(dependencies, { type: 'alert.channel_deleted', principal, requestId, details })
      await recordChange(recorder, { event, ledger: deleteChannel(before) })
      return last
    },
  })
}

const withoutNull = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

const taken = { param: 'name', message: 'There is an alert channel of this name already' }

async function requireChannel({ ledger }: AlertDependencies, id: string): Promise<ChannelRow> {
  const row = await findChannel(ledger, id)
  if (row === null) throw new Failure('not_found', { message: 'There is no such alert channel' })
  return row
}

async function one(dependencies: AlertDependencies, id: string): Promise<ChannelRecord> {
  const [record] = await shown(dependencies, [await requireChannel(dependencies, id)])
  if (record === undefined) throw new Failure('not_found', { message: 'There is no such alert channel' })
  return record
}

const time = (at: number | null): string | null => (at === null ? null : timestamp(at))

async function shown(dependencies: AlertDependencies, rows: readonly ChannelRow[]): Promise<ChannelRecord[]> {
  const waiting = await waitingCounts(
    dependencies.ledger,
    rows.map(({ id }) => id),
  )
  return await Promise.all(
    rows.map(async (row) => {
      const config = configOf(row)
      const { url, ...secrets } = await secretsOf(dependencies, row.id)
      const address = url ?? (row.kind === 'pagerduty' ? pagerDutyUrl : null)
      return {
        ...{ id: row.id, name: row.name, kind: row.kind, ...config, enabled: row.enabled === 1 },
        // Paths and queries of such addresses are secrets.
        host: address === null ? config.smtp_host : new URL(address).host,
        has_url: url !== undefined,
        has_signing_secret: secrets.signing_secret !== undefined,
        has_routing_key: secrets.routing_key !== undefined,
        has_smtp_password: secrets.smtp_password !== undefined,
        state:
          row.failingSince !== null
            ? ('failing' as const)
            : row.lastSentAt === null
              ? ('unused' as const)
              : ('ok' as const),
        ...{ failing_since: time(row.failingSince), last_error: row.lastError, last_sent_at: time(row.lastSentAt) },
        next_try_at: row.failingSince === null ? null : time(row.retryAt),
        waiting: waiting.get(row.id) ?? 0,
        ...{ created_at: timestamp(row.createdAt), version: row.version },
      }
    }),
  )
}

export const channelTestRoute = (dependencies: AlertDependencies) =>
  new Elysia({ name: 'alert channel test' }).use(conventions).post(
    '/v1/alert-channels/:id/test',
    async ({ params: { id } }) => {
      const channel = await openChannel(dependencies, await requireChannel(dependencies, id))
      const { newId, clock, consoleUrl } = dependencies
      try {
        await send(channel, testNotice(newId(), clock.now(), linkTo(consoleUrl())), toolsOf(dependencies))
        return { delivered: true, error: null }
      } catch (error) {
        if (!(error instanceof SendFailure)) throw error
        return { delivered: false, error: error.message }
      }
    },
    {
      access: 'catalog:write',
      wholeOrganization: true,
      params: idParams,
      body: z.strictObject({}),
      response: z.object({ delivered: z.boolean(), error: z.string().nullable().describe('Why it did not arrive') }),
      failures: [404],
      detail: { tags: ['Alerts'], summary: 'Sends a notice to an alert channel now, and says whether it arrived' },
    },
  )
