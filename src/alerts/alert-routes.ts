/** `/v1/alerts` and `/v1/alert-firings`: what is watched, what it finds now, and what it has found. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { requireVersion } from '../api/entity-tag.ts'
import { cutPage, pageQuery, recordPage, startOf } from '../api/page.ts'
import { idParams } from '../api/resource.ts'
import { resourceRoutes } from '../api/resource-routes.ts'
import { requireWholeOrganization } from '../api/token-reach.ts'
import { foldRollups } from '../events/rollups/fold.ts'
import { Failure } from '../failure.ts'
import { timestamp } from '../lib/clock.ts'
import { recordChange } from '../members/member-event.ts'
import { alertEvent, given } from './alert-event.ts'
import { type AlertRecord, alertConfig, alertResource } from './alert-resource.ts'
import { checkAlert } from './check-alert.ts'
import { conditionRow } from './conditions/condition-table.ts'
import { measures } from './conditions/measure.ts'
import { Round } from './conditions/round.ts'
import { namesOfDeleted } from './deleted-names.ts'
import { knownChannels } from './delivery/stored-channel.ts'
import type { AlertDependencies } from './dependencies.ts'
import { endAll, reachedBy } from './evaluate.ts'
import { type FiringRecord, firingSchema } from './firing-record.ts'
import { requireReasons } from './require-reasons.ts'
import { requireScope, requireWatchable } from './require-scope.ts'
import {
  type Alert,
  type AlertRow,
  addAlert,
  alertOf,
  changeAlert,
  configOf,
  deleteAlert,
  deliveriesOf,
  findAlert,
  listAlerts,
  listFirings,
  openCounts,
  storedConfig,
} from './stored-alert.ts'

export const alertRoutes = (dependencies: AlertDependencies) => {
  const { state, ledger, recorder, clock, newId } = dependencies
  return resourceRoutes(alertResource, {
    async list(query, { principal }) {
      requireWholeOrganization(principal)
      return await recordPage(query, {
        filters: { list: 'alerts' },
        read: (after, count) => listAlerts(ledger, after, count),
        show: (rows) => shown(dependencies, rows),
      })
    },
    async get(id, { principal }) {
      requireWholeOrganization(principal)
      return await one(dependencies, id)
    },
    async create({ name, condition, enabled, ...rest }, { principal, requestId }) {
      requireWholeOrganization(principal)
      const config = alertConfig.parse(rest)
      const row: AlertRow = {
        ...{ id: newId(), name, condition, enabled: Number(enabled), config: JSON.stringify(config) },
        ...{ createdAt: clock.now(), version: 1 },
      }
      const alert = await requireFits(dependencies, row)
      await requireScope(dependencies, config.scope)
      await requireWatchable(ledger, alert)
      await requireReasons(state, config.reasons)
      const details = { alert_id: row.id, name, kind: condition }
      const event = await alertEvent(dependencies, { type: 'alert.created', principal, requestId, details })
      await recordChange(recorder, { event, ledger: [addAlert(row)] }, taken)
      return await one(dependencies, row.id)
    },
    async update(id, { name, enabled, ...changes }, { principal, requestId, headers }) {
      requireWholeOrganization(principal)
      const before = await requireAlert(dependencies, id)
      requireVersion(headers, before.version)
      const isBegun = before.enabled === 0 && enabled === true
      const config = storedConfig.parse({
        ...{ ...configOf(before), ...given(changes) },
        ...(isBegun ? { enabled_at: clock.now() } : {}),
      })
      const after = {
        ...before,
        name: name ?? before.name,
        enabled: enabled === undefined ? before.enabled : Number(enabled),
        config: JSON.stringify(config),
      }
      const alert = await requireFits(dependencies, after)
      if (changes.thresholds !== undefined) await requireWatchable(ledger, alert)
      if (changes.reasons !== undefined) await requireReasons(state, changes.reasons)
      const fields = Object.keys(given({ name, enabled, ...changes }))
      const details = { alert_id: id, name: after.name, kind: before.condition, fields }
      const event = await alertEvent(dependencies, { type: 'alert.updated', principal, requestId, details })
      const isEnded = before.enabled === 1 && after.enabled === 0
      const { ended, further } = isEnded
        ? await endAll(dependencies, alert, { principal, requestId })
        : { ended: [], further: [] }
      await recordChange(recorder, { event, further, ledger: changeAlert(before, after, ended) }, taken)
      return await one(dependencies, id)
    },
    async remove(id, { principal, requestId, headers }) {
      requireWholeOrganization(principal)
      const before = await requireAlert(dependencies, id)
      requireVersion(headers, before.version)
      const last = await one(dependencies, id)
      const details = { alert_id: id, name: before.name, kind: before.condition }
      const event = await alertEvent(dependencies, { type: 'alert.deleted', principal, requestId, details })
      const { ended, further } = await endAll(dependencies, requireKnown(before), { principal, requestId })
      await recordChange(recorder, { event, further, ledger: deleteAlert(before, ended) })
      return last
    },
  })
}

const taken = { param: 'name', message: 'There is an alert of this name already' }

/** Refuses fields that its condition does not have, and channels that are not there. */
async function requireFits({ ledger }: AlertDependencies, row: AlertRow): Promise<Alert> {
  const alert = requireKnown(row)
  checkAlert(alert.condition, configOf(row))
  const known = new Set((await knownChannels(ledger, alert.channelIds)).map(({ id }) => id))
  const missing = alert.channelIds.findIndex((id) => !known.has(id))
  if (missing < 0) return alert
  throw new Failure('invalid_parameter', {
    param: `channel_ids.${missing}`,
    message: 'There is no such alert channel',
  })
}

function requireKnown(row: AlertRow): Alert {
  const alert = alertOf(row)
  if (alert === null) throw new Failure('conflict', { message: `The condition ${row.condition} is of a later version` })
  return alert
}

async function requireAlert({ ledger }: AlertDependencies, id: string): Promise<AlertRow> {
  const row = await findAlert(ledger, id)
  if (row === null) throw new Failure('not_found', { message: 'There is no such alert' })
  return row
}

async function one(dependencies: AlertDependencies, id: string): Promise<AlertRecord> {
  const [record] = await shown(dependencies, [await requireAlert(dependencies, id)])
  if (record === undefined) throw new Failure('not_found', { message: 'There is no such alert' })
  return record
}

async function shown({ ledger }: AlertDependencies, rows: readonly AlertRow[]): Promise<AlertRecord[]> {
  const open = await openCounts(
    ledger,
    rows.map(({ id }) => id),
  )
  return rows.flatMap((row) => {
    const alert = alertOf(row)
    if (alert === null) return []
    const usual = conditionRow(alert.condition)
    return {
      ...{ id: row.id, name: row.name, condition: alert.condition, watches: usual.about },
      ...{ scope: alert.scope, unit: usual.unit, unit_of_one: usual.one },
      thresholds: [...alert.thresholds],
      window_minutes: usual.windowMinutes === null ? null : alert.windowMinutes,
      at_least: usual.atLeast === null ? null : alert.atLeast,
      ...{ severity: alert.severity, reasons: [...alert.reasons], quiet_minutes: alert.quietMinutes },
      ...{ channel_ids: [...alert.channelIds], send_resolved: alert.sendResolved, enabled: row.enabled === 1 },
      ...{ open: open.get(row.id) ?? 0, created_at: timestamp(row.createdAt), version: row.version },
    }
  })
}

const historyQuery = z.strictObject({
  alert_id: z.uuid().optional(),
  state: z.enum(['open', 'resolved']).optional().describe('open: what still holds'),
  ...pageQuery,
})

const foundSchema = z.object({
  known: z.boolean().describe('Whether it can be measured now'),
  measured: z.array(
    z.object({
      subject: z.string(),
      value: z.number(),
      reached: z.array(z.number()).describe('The thresholds that it has reached'),
      about: z.string(),
    }),
  ),
})

/** How many measurements a trial shows. */
const mostMeasured = 50

/** What is beside the records: a trial, and the history. */
export const firingRoutes = (dependencies: AlertDependencies) =>
  new Elysia({ name: 'alert firings' })
    .use(conventions)
    .post(
      '/v1/alerts/:id/test',
      async ({ params: { id } }) => {
        const alert = requireKnown(await requireAlert(dependencies, id))
        await foldRollups(dependencies.ledger, 20)
        const measured = await measures[alert.condition](alert, new Round(dependencies))
        const reached = reachedBy(alert, measured ?? [])
        return {
          known: measured !== null,
          measured: await Promise.all(
            (measured ?? []).slice(0, mostMeasured).map(async (each) => ({
              ...{ subject: each.subject, value: each.value, about: await each.about() },
              reached: reached
                .filter(({ measured: { subject } }) => subject === each.subject)
                .map(({ threshold }) => threshold),
            })),
          ),
        }
      },
      {
        access: 'catalog:write',
        wholeOrganization: true,
        params: idParams,
        body: z.strictObject({}),
        response: foundSchema,
        failures: [404, 409],
        detail: { tags: ['Alerts'], summary: 'Measures an alert now, and says what it finds; nothing is sent' },
      },
    )
    .get(
      '/v1/alert-firings',
      async ({ query: { limit, cursor, alert_id, state } }) => {
        const filters = { list: 'alert-firings', alert_id, state }
        const found = await listFirings(dependencies.ledger, {
          ...{ before: startOf(cursor, filters), limit: limit + 1 },
          ...(alert_id === undefined ? {} : { alertId: alert_id }),
          ...(state === undefined ? {} : { open: state === 'open' }),
        })
        const { rows, next_cursor } = cutPage(found, limit, filters)
        return { alert_firings: await history(dependencies, rows), next_cursor }
      },
      {
        access: 'catalog:read',
        wholeOrganization: true,
        query: historyQuery,
        response: z.object({ alert_firings: z.array(firingSchema), next_cursor: z.string().nullable() }),
        detail: { tags: ['Alerts'], summary: 'Lists what alerts have found, the newest first, with their notices' },
      },
    )

async function history(
  { ledger }: AlertDependencies,
  rows: Awaited<ReturnType<typeof listFirings>>,
): Promise<FiringRecord[]> {
  const deliveries = await deliveriesOf(
    ledger,
    rows.map(({ id }) => id),
  )
  const names = await knownChannels(ledger, [...new Set(deliveries.map(({ channelId }) => channelId))])
  const channelName = new Map(names.map(({ id, name }) => [id, name]))
  const alerts = new Map(
    await Promise.all(
      [...new Set(rows.map(({ alertId }) => alertId))].map(async (id) => [id, await findAlert(ledger, id)] as const),
    ),
  )
  const referred = [...rows.map(({ alertId }) => alertId), ...deliveries.map(({ channelId }) => channelId)]
  const gone = await namesOfDeleted(
    ledger,
    new Set(referred.filter((id) => alerts.get(id) == null && !channelName.has(id))),
    // What was found was found before its alert or its channel was deleted.
    Math.min(...rows.map(({ firedAt }) => firedAt)),
  )
  return rows.map((row) => {
    const alert = alerts.get(row.alertId) ?? null
    return {
      ...{ id: row.id, alert_id: row.alertId, alert: alert?.name ?? gone.get(row.alertId) ?? null },
      ...{ alert_deleted: alert === null, condition: alert?.condition ?? null },
      ...{ subject: row.subject, value: row.value, threshold: row.threshold, severity: row.severity, about: row.about },
      ...{ fired_at: timestamp(row.firedAt), resolved_at: row.resolvedAt === null ? null : timestamp(row.resolvedAt) },
      notices: deliveries
        .filter(({ firingId }) => firingId === row.id)
        .map(({ id, channelId, kind, state, attempts, error, sentAt }) => ({
          ...{ id, channel_id: channelId, kind, state, attempts, error },
          channel: channelName.get(channelId) ?? gone.get(channelId) ?? null,
          channel_deleted: !channelName.has(channelId),
          sent_at: sentAt === null ? null : timestamp(sentAt),
        })),
    }
  })
}
