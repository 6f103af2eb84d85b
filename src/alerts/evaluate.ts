/**
 * One evaluation of all alerts: measures, compares with the thresholds, and keeps what began and what is over.
 *
 *   1. One control plane at a time evaluates: the one with the lease. Losing it in the middle does no harm.
 *   2. What begins is kept with its event and with a notice for each channel, in one transaction. A unique index of what
 *      is open makes a second control plane's transaction fail, so each thing fires once.
 *   3. What is open and no longer measured above its threshold is over. What is not known now stays as it is.
 *
 * Whether something is open does not depend on a clock. A clock that jumps moves the window that is looked at, and with
 * it what is found; it makes nothing fire twice.
 */
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Event } from '../events/event.ts'
import { brokenConstraint } from '../events/log/append.ts'
import { foldRollups } from '../events/rollups/fold.ts'
import { Failure } from '../failure.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import type { Statement } from '../store/statement.ts'
import { conditionRow } from './conditions/condition-table.ts'
import { measures } from './conditions/measure.ts'
import { Round } from './conditions/round.ts'
import { enabledChannelIds } from './delivery/stored-channel.ts'
import { type AlertDependencies, type Measured, subjectsAtMost } from './dependencies.ts'
import {
  type Alert,
  addDelivery,
  addFiring,
  alertOf,
  announce,
  announcedChannels,
  enabledAlerts,
  endFiring,
  type FiringRow,
  hasNoneOpen,
  holdLease,
  isHeldBack,
  openFirings,
  removeOldFirings,
} from './stored-alert.ts'

const minute = 60_000
const day = 86_400_000
/** How many rounds of arrivals are added to the sums before they are read. */
const turnsBeforeReading = 40

/** A measurement that has reached a threshold. */
export interface Reached {
  measured: Measured
  threshold: number
}

/** Evaluates where this control plane has, or gets, the lease. */
export async function evaluateIfHeld(
  dependencies: AlertDependencies,
  { holder, leaseMs }: { holder: string; leaseMs: number },
): Promise<void> {
  if (await holdLease(dependencies.ledger, holder, leaseMs)) await evaluateAlerts(dependencies)
}

/** Evaluates every enabled alert. One that cannot be measured is logged, and leaves the others alone. */
export async function evaluateAlerts(dependencies: AlertDependencies): Promise<void> {
  const { ledger, log, settings } = dependencies
  await foldRollups(ledger, turnsBeforeReading)
  const open = Map.groupBy(await openFirings(ledger), ({ alertId }) => alertId)
  const round = new Round(dependencies, open)
  const alerts = (await enabledAlerts(ledger)).flatMap((row) => alertOf(row) ?? [])
  for (const alert of alerts) {
    try {
      const measured = await measures[alert.condition](alert, round)
      const known = open.get(alert.id) ?? []
      if (measured !== null) await keep(dependencies, round.now, alert, reachedBy(alert, measured, known), known)
    } catch (error) {
      log.error({ alert: alert.id, error: String(error) }, 'An alert could not be evaluated and will be tried again')
    }
  }
  await ledger.write(removeOldFirings(round.now - settings.event_retention_days * day), {})
}

/**
 * What has reached which thresholds. Of many subjects those that are open already, then those furthest beyond theirs; the
 * others are counted in one more subject. The subjects of a group are announced and counted apart from all others.
 */
export function reachedBy(
  alert: Alert,
  measured: readonly Measured[],
  open: readonly Pick<FiringRow, 'subject' | 'threshold'>[] = [],
): Reached[] {
  const known = new Set(open.map(({ subject }) => subject))
  const isKnown = ({ measured: { subject } }: { measured: Measured }) => Number(known.has(subject))
  const { fires } = conditionRow(alert.condition)
  const sign = fires === 'at_least' ? 1 : -1
  const over = measured
    .map((each) => ({
      measured: each,
      reached: alert.thresholds.filter((threshold) => sign * (each.value - threshold) >= 0),
    }))
    .filter(({ reached }) => reached.length > 0)
    .toSorted((left, right) => isKnown(right) - isKnown(left) || sign * (right.measured.value - left.measured.value))
  return [...Map.groupBy(over, ({ measured: { group } }) => group?.subject ?? '').values()].flatMap((all) => {
    const single = all.slice(0, subjectsAtMost)
    const [first] = single
    const count = first?.measured.group?.count ?? all.length
    return [
      ...single.flatMap(({ measured: each, reached }) => reached.map((threshold) => ({ measured: each, threshold }))),
      ...(first === undefined ? [] : overflow(first.measured, count - single.length, open)),
    ]
  })
}

/**
 * How many subjects have no firing of their own, as one more subject. It is announced when it begins, and again whenever
 * there are twice as many; it is over when there are none.
 */
function overflow(
  { group, once }: Measured,
  value: number,
  open: readonly Pick<FiringRow, 'subject' | 'threshold'>[],
): Reached[] {
  if (value <= 0) return []
  const subject = group === undefined ? 'more' : `${group.subject} more`
  const about = () => group?.more(value) ?? `The same holds for ${value} more.`
  const known = open.filter((firing) => firing.subject === subject).map(({ threshold }) => threshold)
  const doubled = 2 ** Math.floor(Math.log2(value))
  const thresholds = doubled > Math.max(0, ...known) ? [...known, doubled] : known
  return thresholds.map((threshold) => ({
    measured: { subject, value, about, ...(once === undefined ? {} : { once }) },
    threshold,
  }))
}

async function keep(
  dependencies: AlertDependencies,
  now: number,
  alert: Alert,
  reached: readonly Reached[],
  open: readonly FiringRow[],
): Promise<void> {
  const keyOf = (subject: string, threshold: number) => `${threshold} ${subject}`
  const isOpen = new Set(open.map(({ subject, threshold }) => keyOf(subject, threshold)))
  const holds = new Set(reached.map(({ measured: { subject }, threshold }) => keyOf(subject, threshold)))
  const begun = reached.filter(({ measured, threshold }) => !isOpen.has(keyOf(measured.subject, threshold)))
  for (const [, each] of Map.groupBy(begun, ({ measured }) => measured.subject)) {
    const furthest = furthestOf(alert, each)
    for (const { measured, threshold } of each) {
      await fire(dependencies, now, alert, { measured, threshold, announced: threshold === furthest })
    }
  }
  const [still, over] = [[] as FiringRow[], [] as FiringRow[]]
  for (const firing of open) (holds.has(keyOf(firing.subject, firing.threshold)) ? still : over).push(firing)
  for (const firing of over) await resolve(dependencies, now, alert, firing)
  for (const [subject, each] of Map.groupBy(still, (firing) => firing.subject)) {
    const found = reached.find(({ measured }) => measured.subject === subject)
    if (found !== undefined) await announceNextThreshold(dependencies, alert, each, found.measured)
  }
}

/** Of several thresholds that were reached at once, only the one furthest beyond is announced. */
const furthestOf = ({ condition }: Alert, thresholds: readonly { threshold: number }[]): number =>
  Math[conditionRow(condition).fires === 'at_least' ? 'max' : 'min'](...thresholds.map(({ threshold }) => threshold))

/**
 * Announces the furthest threshold that a subject still has reached where none of its open firings is announced: the one
 * that was is over. What is stored decides, so a process that is killed after it resolved that one loses no notice.
 */
async function announceNextThreshold(
  dependencies: AlertDependencies,
  alert: Alert,
  open: readonly FiringRow[],
  measured: Measured,
): Promise<void> {
  if (open.some(({ announced }) => announced === 1)) return
  const furthest = furthestOf(alert, open)
  const next = open.find(({ threshold }) => threshold === furthest)
  if (next === undefined) return
  const announced = { ...next, value: measured.value, about: await measured.about(), announced: 1 }
  const channels = await channelsOf(dependencies, alert)
  await record(dependencies, 'alert.fired', alert, announced, [
    ...announce(announced),
    ...notices(dependencies, announced, 'fired', channels),
  ])
}

async function fire(
  dependencies: AlertDependencies,
  now: number,
  alert: Alert,
  { measured, threshold, announced }: Reached & { announced: boolean },
): Promise<void> {
  const { ledger, newId } = dependencies
  const { quietMinutes, enabledAt } = alert
  const quiet = { now, quietMs: quietMinutes * minute, once: measured.once === true, enabledAt }
  const same = { alertId: alert.id, subject: measured.subject, threshold }
  if (await isHeldBack(ledger, same, quiet)) return
  const firing: FiringRow = {
    ...{ id: newId(), ...same, value: measured.value, severity: alert.severity, firedAt: now, resolvedAt: null },
    about: await measured.about(),
    announced: Number(announced),
  }
  const channels = announced ? await channelsOf(dependencies, alert) : []
  await record(dependencies, 'alert.fired', alert, firing, [
    ...addFiring(firing, quiet),
    ...notices(dependencies, firing, 'fired', channels),
  ])
}

const resolve = async (dependencies: AlertDependencies, now: number, alert: Alert, firing: FiringRow): Promise<void> =>
  record(dependencies, 'alert.resolved', alert, firing, await ending(dependencies, now, alert, firing))

/** The end of a firing, with a notice for each channel that was told of it. */
async function ending(
  dependencies: AlertDependencies,
  now: number,
  { sendResolved }: Alert,
  firing: FiringRow,
): Promise<Statement[]> {
  const channels = sendResolved ? await announcedChannels(dependencies.ledger, firing.id) : []
  return [...endFiring(firing, now), ...notices(dependencies, firing, 'resolved', channels)]
}

/**
 * Ends all that an alert has open when somebody disables or deletes it: statements for the transaction of that change,
 * and an event for each. The change is refused where an evaluation came between.
 */
export async function endAll(
  dependencies: AlertDependencies,
  alert: Alert,
  by: Pick<EventOrigin, 'principal' | 'requestId'>,
): Promise<{ ended: Statement[]; further: Event[] }> {
  const { ledger, state, clock } = dependencies
  const open = await openFirings(ledger, alert.id)
  const configVersion = await versionNow(state)
  const ended: Statement[] = []
  for (const firing of open) ended.push(...(await ending(dependencies, clock.now(), alert, firing)))
  return {
    ended: [...ended, hasNoneOpen(alert.id)],
    further: open.map((firing) =>
      firingEvent(dependencies, { type: 'alert.resolved', ...by, configVersion }, alert, firing),
    ),
  }
}

/** An alert without channels of its own uses all of them. */
async function channelsOf({ ledger }: AlertDependencies, { channelIds }: Alert): Promise<string[]> {
  const enabled = await enabledChannelIds(ledger)
  return channelIds.length === 0 ? enabled : enabled.filter((id) => channelIds.includes(id))
}

const notices = (
  { newId, clock }: AlertDependencies,
  { id: firingId }: FiringRow,
  kind: 'fired' | 'resolved',
  channels: readonly string[],
): Statement[] =>
  channels.map((channelId) => addDelivery({ id: newId(), firingId, channelId, kind, createdAt: clock.now() }))

interface EventOrigin {
  type: 'alert.fired' | 'alert.resolved'
  principal: Principal
  requestId: string
  configVersion: number
}

const firingEvent = (
  { clock, newId }: AlertDependencies,
  origin: EventOrigin,
  alert: Alert,
  { id: firing_id, subject, value, threshold, severity, about }: FiringRow,
): Event =>
  controlPlaneEvent({
    ...origin,
    details: {
      ...{ alert_id: alert.id, name: alert.name, kind: alert.condition },
      ...{ firing_id, subject, value, threshold, severity, about },
    },
    clock,
    newId,
  })

/** Keeps a change with its event. Does nothing where another control plane was first. */
async function record(
  dependencies: AlertDependencies,
  type: EventOrigin['type'],
  alert: Alert,
  firing: FiringRow,
  ledger: readonly Statement[],
): Promise<void> {
  const { recorder, state } = dependencies
  const principal = { ...anonymous, name: 'alerts' }
  const configVersion = await versionNow(state)
  const event = firingEvent(dependencies, { type, principal, requestId: '', configVersion }, alert, firing)
  try {
    await recorder.change({ event: { ...event, request_id: null }, state: [], ledger })
  } catch (error) {
    const wasFirst = (error instanceof Failure && error.code === 'conflict') || brokenConstraint(error) !== null
    if (!wasFirst) throw error
  }
}
